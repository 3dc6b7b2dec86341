"""The verb that has a session's context summarised before its next turn."""

from __future__ import annotations

import argparse

from app.cli.base import exits
from app.cli.base.context import Context
from app.cli.base.output import emit, say


def compact(ctx: Context, args: argparse.Namespace) -> int:
    with ctx.connect() as client:
        client.call("compact", sid=args.id)
    if args.json:
        emit({"ok": True})
    else:
        say("its model writes a summary before the next turn; a context that is short already stays as it is")
    return exits.OK
