"""The verb of alarms: put those of a session off."""

from __future__ import annotations

import argparse
from typing import Any

from app.cli import exits
from app.cli.context import Context
from app.cli.output import emit, safe, say, warn
from app.cli.several import each
from harness.events.words import local
from harness.protocol.amounts import seconds


def snooze(ctx: Context, args: argparse.Namespace) -> int:
    try:
        stretch = seconds(args.stretch)
    except ValueError as exc:
        warn(f"--for: {exc}")
        return exits.USAGE
    with ctx.connect() as client:
        rows = [client.call("session", sid=one)["row"] for one in dict.fromkeys(args.ids)]
        named = ((row["name"], row["sid"]) for row in rows)
        return each(named, lambda sid: _told(args, client.call("snooze", sid=sid, seconds=stretch)))


def _told(args: argparse.Namespace, reply: dict[str, Any]) -> None:
    if args.json:
        emit({name: reply[name] for name in ("name", "alarms", "until")})
        return
    what = ", ".join(safe(one) for one in reply["alarms"])
    until = safe(local(reply["until"], "%m-%d %H:%M"))
    say(f"{safe(reply['name'])}: no reminder of {what} before {until}, unless something else comes up")
