"""The verb that brings a session's worktree back to what it was before a call."""

from __future__ import annotations

import argparse
from typing import Any

from app.cli import exits
from app.cli.context import Context
from app.cli.output import age, emit, safe, say, table
from app.cli.sessions import Usage
from harness.events.words import counted

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
        reply = client.call("undo", sid=args.id, to=args.to or "")
    if args.json:
        emit(reply)
        return exits.OK
    what = f" ({safe(str(reply['title']), 120)})" if reply.get("title") else ""
    say(f"undone: the worktree is what it was before {safe(str(reply['to']))}{what}")
    brought_back(reply)
    for text in reply.get("commits", []):
        say(f"off the branch: {safe(str(text), 200)}")
    if reply.get("more_commits"):
        say(f"off the branch: {counted(reply['more_commits'], 'more commit')}")
    if reply.get("before"):
        say(f"kept before it: checkpoint {safe(str(reply['before']))}, your own changes and commits too")
    say(f"take this back:  watchfloor undo {safe(args.id)} --to {safe(str(reply['undo_id']))}")
    return exits.OK


def brought_back(reply: dict[str, Any]) -> None:
    """Say what became of a worktree that is now what it was."""
    say(f"{counted(reply['restored'], 'name')} brought back, {counted(reply['removed'], 'name')} removed")
    if reply.get("refused_count"):
        say(f"{counted(reply['refused_count'], 'name')} could not be brought back:")
        for name in reply.get("refused", []):
            say(f"  {safe(str(name), 200)}")


def _list(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.connect() as client:
        client.wait_up_to(_PATIENCE_S)
        reply = client.call("undo_points", sid=args.id)
    points: list[dict[str, Any]] = reply["points"]
    if args.json:
        for point in points:
            emit(point)
        return exits.OK
    if not points:
        say("nothing to undo: no call may have changed a file yet")
        return exits.OK
    body = [
        (safe(p["call_id"]), age(p["ts"]), f"{p['changed']:,}", _state(p), safe(p["title"] or p["tool"], 300))
        for p in points
    ]
    for line in table(("BEFORE", "AGE", "CHANGED", "STATE", "WHAT"), body, width=max(ctx.width, 100)):
        say(line)
    say(
        f"kept states take {reply['store_bytes'] / _MIB:,.1f} MiB; go back to one: watchfloor undo {safe(args.id)} --to"
        " BEFORE"
    )
    return exits.OK


def _state(point: dict[str, Any]) -> str:
    """What is to know about one state, in a few words."""
    if point.get("expired"):
        return "no longer kept"
    left_out = point.get("left_out", 0)
    words = ["undone"] if point.get("undone") else []
    words += [f"{left_out:,} too large"] if left_out else []
    words += ["you committed after it"] if point.get("yours") and not point.get("undone") else []
    return ", ".join(words) or "kept"
