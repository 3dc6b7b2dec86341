"""The verb that takes an ended session up again."""

from __future__ import annotations

import argparse

from app.cli.base import exits
from app.cli.base.arguments import Usage
from app.cli.base.context import Context
from app.cli.base.output import emit, safe, say
from app.cli.verbs.sessions import commands
from app.client import requests
from app.client.replies import ask
from harness.domain.cap import OF_SESSION
from harness.views.replies import WentOn

_PATIENCE_S = 90.0
"""Seconds for an end that is still being carried out, and for its keeper to come back."""
_OPTIONS = {"rounds": "--rounds", "checks": "--replace-checks"} | {cap.field: cap.option for cap in OF_SESSION}


def go_on(ctx: Context, args: argparse.Namespace) -> int:
    given = ((cap.field, getattr(args, cap.option[2:].replace("-", "_"))) for cap in OF_SESSION)
    typed = {name: value for name, value in given if value is not None}
    try:
        wish = requests.wish_of(
            args.text,
            args.rounds or "",
            typed,
            commands(args.check),
            replace_checks=args.replace_checks,
            fresh=args.fresh,
        )
    except requests.Unusable as exc:
        raise Usage(f"{_OPTIONS.get(exc.field, exc.field)}: {exc}") from exc
    request = requests.go_on(ctx.folders, args.id, wish)
    with ctx.connect() as client:
        client.wait_up_to(_PATIENCE_S)
        went = ask(client, WentOn, "continue", **request)
    if args.json:
        emit({"sid": went.sid, "name": went.name})
    else:
        say(f"{safe(went.name)} goes on; watch it: watchfloor attach {went.sid}")
    return exits.OK
