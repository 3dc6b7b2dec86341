"""The verb of alarms: put those of a session off."""

from __future__ import annotations

import argparse

from app.cli import exits
from app.cli.context import Context
from app.cli.output import emit, safe, say, warn
from harness.protocol.amounts import seconds


def snooze(ctx: Context, args: argparse.Namespace) -> int:
    try:
        stretch = seconds(args.stretch)
    except ValueError as exc:
        warn(f"--for: {exc}")
        return exits.USAGE
    with ctx.connect() as client:
        reply = client.call("snooze", sid=args.id, seconds=stretch)
    if args.json:
        emit({name: reply[name] for name in ("name", "alarms", "until")})
        return exits.OK
    what = ", ".join(safe(one) for one in reply["alarms"])
    say(f"{safe(reply['name'])}: no reminder of {what} before {safe(reply['until'])}, unless something else comes up")
    return exits.OK
