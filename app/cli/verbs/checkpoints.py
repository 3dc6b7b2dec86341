"""The verbs of checkpoints: list them, make one, go back to one, go on from one elsewhere."""

from __future__ import annotations

import argparse

import msgspec

from app.cli.base import exits
from app.cli.base.context import Context
from app.cli.base.output import age, emit, safe, say, table
from app.cli.verbs.undo import brought_back
from app.client.replies import ask
from harness.views.checkpoint_views import CheckpointList, CheckpointMade, CheckpointView
from harness.views.replies import ForkBegun
from harness.views.undo_views import Restored

_PATIENCE_S = 900.0
"""Seconds that keeping, or bringing back, a very large tree may take."""


def listed(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.look() as client:
        reply = ask(client, CheckpointList, "checkpoints", sid=args.id)
    found = reply.checkpoints
    if args.json:
        for one in found:
            emit(msgspec.to_builtins(one))
        return exits.OK
    if not found:
        say("no checkpoint yet: one is made when an entry or a check passes, and by: watchfloor checkpoint ID")
        return exits.OK
    body = [
        (
            safe(one.id),
            age(one.ts),
            f"{one.changed:,}",
            "-" if one.passed is None else f"{one.passed}",
            safe(one.commit[:12]),
            _what(one),
        )
        for one in found
    ]
    heads = ("ID", "AGE", "CHANGED", "PASSED", "COMMIT", "WHAT")
    for line in table(heads, body, width=max(ctx.width, 100)):
        say(line)
    if gone := reply.made - len(found):
        say(f"older ones kept no longer ([checkpoints] keep in config.toml): {gone:,}")
    return exits.OK


def make(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.connect() as client:
        client.wait_up_to(_PATIENCE_S)
        one = ask(client, CheckpointMade, "checkpoint", sid=args.id, label=args.label).checkpoint
    if args.json:
        emit(msgspec.to_builtins(one))
        return exits.OK
    say(f"checkpoint {safe(one.id)}: commit {safe(one.commit[:12])}, the log up to record {one.through_seq}")
    say(f"go back to it:  watchfloor restore {safe(args.id)} {safe(one.id)}")
    return exits.OK


def restore(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.connect() as client:
        client.wait_up_to(_PATIENCE_S)
        reply = ask(client, Restored, "restore", sid=args.id, checkpoint=args.checkpoint)
    if args.json:
        emit(msgspec.to_builtins(reply))
        return exits.OK
    say(f"restored: the work is what it was at checkpoint {safe(reply.checkpoint_id)}")
    brought_back(reply)
    say(f"what was there before is checkpoint {safe(reply.before)}; take this back:")
    say(f"  watchfloor restore {safe(args.id)} {safe(reply.before)}")
    return exits.OK


def fork(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.connect() as client:
        client.wait_up_to(_PATIENCE_S)
        reply = ask(client, ForkBegun, "fork", sid=args.id, checkpoint=args.at, goal=args.goal, name=args.name)
    if args.json:
        emit(msgspec.to_builtins(reply))
        return exits.OK
    say(f"{safe(reply.sid)}  {safe(reply.name)}  goes on from checkpoint {safe(reply.checkpoint_id)}")
    for text in reply.warnings:
        say(f"  {safe(text, 300)}")
    return exits.OK


def _what(one: CheckpointView) -> str:
    lacks = f" ({one.left_out:,} files too large for it)" if one.left_out else ""
    plain = {"hand": "by hand", "stop": "as it was stopped", "fork": "for a fork"}.get(one.why, one.why)
    return safe(one.label or plain, 200) + lacks
