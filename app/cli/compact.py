"""The verb that has a session's context summarised before its next turn."""

from __future__ import annotations

import argparse

from app.cli import exits
from app.cli.context import Context
from app.cli.output import emit, say


def compact(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.connect() as client:
        client.call("compact", sid=args.id)
    if args.json:
        emit({"ok": True})
    else:
        say("its model writes a summary before the next turn; a context that is short already stays as it is")
    return exits.OK
