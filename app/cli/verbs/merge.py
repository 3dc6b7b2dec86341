"""Taking a session's work: diff, merge."""

from __future__ import annotations

import argparse
from pathlib import Path

import msgspec

from app.cli.base import exits
from app.cli.base.context import Context
from app.cli.base.output import emit, safe, say
from app.client import requests
from app.client.replies import ask
from harness.domain import outcomes
from harness.domain.steered import Steered
from harness.domain.text.formatting import counted
from harness.events.work import merge_events as m
from harness.views.merge_views import HandedBack, Merged
from harness.views.replies import Compared, FileDiff

_PATIENCE_S = 6 * 3600.0
"""Longest wait: every check of the session may run on the result."""
_LISTED = 40


def diff(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.look() as client:
        reply = ask(client, Compared, "diff", sid=args.id)
    cut = reply.truncated
    if args.json:
        touches = msgspec.to_builtins(reply.touches)
        emit({"files": msgspec.to_builtins(reply.files), "patch": reply.patch, "truncated": cut, "touches": touches})
        return exits.OK
    if args.stat:
        _stat(reply.files)
        _touches(reply.touches)
        return exits.OK
    for line in reply.patch.split("\n"):
        say(safe(line))
    if cut:
        where = f"all its files: watchfloor diff --stat {safe(args.id)}"
        say(f"\\ NOT ALL IS SHOWN: the patch is longer than 2 MiB; {where}")
    return exits.OK


def _stat(files: list[FileDiff]) -> None:
    """One line a file, and what they come to."""
    added = 0
    removed = 0
    for one in files:
        plus = one.added
        minus = one.removed
        added += plus or 0
        removed += minus or 0
        count = "binary" if plus is None else f"+{plus:,} -{minus or 0:,}"
        say(f"{count:>14}  {safe(one.status):<9}  {safe(one.path, 300)}")
    say(f"{counted(len(files), 'file')} changed, +{added:,} -{removed:,}")


def _touches(places: list[Steered]) -> None:
    """Where it touches how tests are found, run, compared or ended."""
    if places:
        say("it touches how tests are found, run, compared or ended:")
    for one in places:
        say(f"  {safe(one.told, 300)}")


def merge(ctx: Context, args: argparse.Namespace) -> int:
    if args.resolve:
        return _resolve(ctx, args)
    how = m.SQUASH if args.squash else m.MERGE
    with ctx.connect() as client:
        client.wait_up_to(_PATIENCE_S)
        try:
            reply = ask(
                client,
                Merged,
                "merge",
                sid=args.id,
                how=m.REBASE if args.rebase else how,
                into=args.into,
                repo=str(Path(args.repo).absolute()) if args.repo else "",
                message=args.message,
                checks=not args.no_checks,
                commit=args.commit,
            )
        except KeyboardInterrupt:
            say(f"the merge goes on without you; what came of it: watchfloor logs {safe(args.id)} --kind merge")
            raise
    if args.json:
        emit(msgspec.to_builtins(reply))
    else:
        _told(reply, args.id)
    return exits.OK if reply.outcome == m.MERGED else exits.NO


def _resolve(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.connect() as client:
        reply = ask(client, HandedBack, "resolve", **requests.resolve(ctx.folders, args.id, args.message))
    if args.json:
        emit(msgspec.to_builtins(reply))
    else:
        say(f"{safe(reply.name)} goes on: it brings {safe(reply.into)} into its work; then merge again")
    return exits.OK


def _told(reply: Merged, sid: str) -> None:
    into = safe(reply.into)
    if reply.outcome == m.MERGED:
        say(f"{into} is at {safe(reply.commit[:12])} now, with the work of {safe(reply.name)}")
        say(f"  {outcomes.on_result([one.outcome for one in reply.checked])}")
        if why := reply.why:
            say(f"  {safe(why, 600)}")
        return
    say(f"not merged into {into}, {safe(reply.outcome)}; nothing was moved")
    files = reply.conflicts
    for name in files[:_LISTED]:
        say(f"  both sides changed {safe(name, 300)}")
    if len(files) > _LISTED:
        say(f"  and {len(files) - _LISTED} more")
    if why := reply.why:
        say(f"  {safe(why, 600)}")
    if reply.outcome in (m.CONFLICTS, m.CHECKS_FAILED):
        say(f"have the agent settle it: watchfloor merge --resolve {safe(sid)}")
