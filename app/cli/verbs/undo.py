"""The verb that brings a session's worktree back to what it was before a call."""

from __future__ import annotations

import argparse

import msgspec

from app.cli.base import exits
from app.cli.base.arguments import Usage
from app.cli.base.context import Context
from app.cli.base.output import age, emit, safe, say, table
from app.client.replies import ask
from harness.domain.text.formatting import counted
from harness.protocol.client import Unreachable
from harness.views.undo_views import BroughtBack, Undone, UndoPoint, UndoPoints

_MIB = 1 << 20
_PATIENCE_S = 900.0
"""Seconds that bringing a very large tree back may take."""


def undo(ctx: Context, args: argparse.Namespace) -> int:
    if args.list:
        if args.to:
            raise Usage("--list only looks; leave out --to, or leave out --list to undo")
        return _list(ctx, args)
    with ctx.connect() as client:
        client.wait_up_to(_PATIENCE_S)
        try:
            reply = ask(client, Undone, "undo", sid=args.id, to=args.to or "")
        except Unreachable as exc:
            if args.to:  # which leads to the same state however often it is asked
                raise
            look = f"a second undo would take back one more call: look first with watchfloor undo {args.id} --list"
            raise type(exc)(exc.message, f"it may be done all the same, and {look}, and name one with --to") from exc
    if args.json:
        emit(msgspec.to_builtins(reply))
        return exits.OK
    what = f" ({safe(reply.title, 120)})" if reply.title else ""
    say(f"undone: the worktree is what it was before {safe(reply.to)}{what}")
    brought_back(reply)
    for text in reply.commits:
        say(f"off the branch: {safe(text, 200)}")
    if reply.more_commits:
        say(f"off the branch: {counted(reply.more_commits, 'more commit')}")
    if reply.before:
        say(f"kept before it: checkpoint {safe(reply.before)}, your own changes and commits too")
    say(f"take this back:  watchfloor undo {safe(args.id)} --to {safe(reply.undo_id)}")
    return exits.OK


def brought_back(reply: BroughtBack) -> None:
    """Say what became of a worktree that is now what it was."""
    say(f"{counted(reply.restored, 'name')} brought back, {counted(reply.removed, 'name')} removed")
    if reply.refused_count:
        say(f"{counted(reply.refused_count, 'name')} could not be brought back:")
        for name in reply.refused:
            say(f"  {safe(name, 200)}")


def _list(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.connect() as client:
        client.wait_up_to(_PATIENCE_S)
        reply = ask(client, UndoPoints, "undo_points", sid=args.id)
    points = reply.points
    if args.json:
        for point in points:
            emit(msgspec.to_builtins(point))
        return exits.OK
    if not points:
        say("nothing to undo: no call may have changed a file yet")
        return exits.OK
    body = [(safe(p.call_id), age(p.ts), f"{p.changed:,}", _state(p), safe(p.title or p.tool, 300)) for p in points]
    for line in table(("BEFORE", "AGE", "CHANGED", "STATE", "WHAT"), body, width=max(ctx.width, 100)):
        say(line)
    say(
        f"kept states take {reply.store_bytes / _MIB:,.1f} MiB; go back to one: watchfloor undo {safe(args.id)} --to"
        " BEFORE"
    )
    return exits.OK


def _state(point: UndoPoint) -> str:
    """What is to know about one state, in a few words."""
    if point.expired:
        return "no longer kept"
    words = ["undone"] if point.undone else []
    words += [f"{point.left_out:,} too large"] if point.left_out else []
    words += ["you committed after it"] if point.yours and not point.undone else []
    return ", ".join(words) or "kept"
