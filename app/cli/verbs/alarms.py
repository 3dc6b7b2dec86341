"""The verb of alarms: put those of a session off."""

from __future__ import annotations

import argparse

import msgspec

from app.cli.base import exits
from app.cli.base.context import Context
from app.cli.base.output import emit, safe, say, warn
from app.cli.base.several import each
from app.client.replies import ask
from harness.domain.settings.amounts import seconds
from harness.domain.text.formatting import local
from harness.views.replies import SessionShown, Snoozed


def snooze(ctx: Context, args: argparse.Namespace) -> int:
    try:
        stretch = seconds(args.stretch)
    except ValueError as exc:
        warn(f"--for: {exc}")
        return exits.USAGE
    with ctx.connect() as client:
        rows = [ask(client, SessionShown, "session", sid=one).row for one in dict.fromkeys(args.ids)]
        named = ((row.name, row.sid) for row in rows)
        return each(named, lambda sid: _told(args, ask(client, Snoozed, "snooze", sid=sid, seconds=stretch)))


def _told(args: argparse.Namespace, done: Snoozed) -> None:
    if args.json:
        emit(msgspec.to_builtins(done))
        return
    what = ", ".join(safe(one) for one in done.alarms)
    until = safe(local(done.until, "%m-%d %H:%M"))
    say(f"{safe(done.name)}: no reminder of {what} before {until}, unless something else comes up")
