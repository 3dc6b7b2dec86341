"""The verb that tells what became of each request to a person."""

from __future__ import annotations

import argparse
import re
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from app.cli.base import exits, since
from app.cli.base.arguments import Usage
from app.cli.base.context import Context
from app.cli.base.output import emit, safe, say
from app.client.replies import Asked, ask
from harness.domain import problems
from harness.domain.text.formatting import local
from harness.protocol.client import SupervisorError
from harness.reports.receipts import Receipt, Receipts, words
from harness.views.replies import Sessions

_PATIENCE_S = 120.0
_REQUEST = re.compile("a[0-9a-v]{7}")
_TITLE = 120
_FIRST = "%m-%d %H:%M:%S"
_THEN = "%H:%M:%S"
_EXACT = "%Y-%m-%d %H:%M:%S %Z"


@dataclass(frozen=True, slots=True)
class ToldReceipt:
    """A receipt and whose it is."""

    sid: str
    name: str
    receipt: Receipt


def receipts(ctx: Context, args: argparse.Namespace) -> int:
    """Those first of which something became last. Exit code 1 when there is a session that cannot be read."""
    try:
        start = since.stamp(args.since, datetime.now(UTC)) if args.since is not None else ""
    except ValueError as exc:
        raise Usage(str(exc)) from exc
    with ctx.look() as client:
        client.wait_up_to(_PATIENCE_S)
        found, unread = _found(client, args.id)
    shown = [one for one in found if one.receipt.newest >= start]
    shown.sort(key=lambda one: one.receipt.rank, reverse=True)
    if args.json:
        for one in shown:
            emit({"sid": one.sid, "name": one.name, **msgspec.to_builtins(one.receipt)})
    else:
        for one in shown:
            _say(one, whole=len(shown) == 1)
        if not shown:
            say("nobody was asked anything")
        for why in unread:
            say(f"not read: {safe(why)}")
    return exits.NO if unread else exits.OK


def _found(client: Asked, wanted: str) -> tuple[list[ToldReceipt], list[str]]:
    """Of the session or the one request that is meant, else all; and what could not be read."""
    if wanted and not _REQUEST.fullmatch(wanted):
        return _of(client, wanted), []
    every: list[ToldReceipt] = []
    unread: list[str] = []
    for row in ask(client, Sessions, "sessions").rows:
        try:
            every += _of(client, row.sid)
        except SupervisorError as exc:
            unread.append(f"{row.name}: {exc}")
    if not wanted:
        return every, unread
    named = [one for one in every if one.receipt.approval_id == wanted]
    return (named, []) if named else (_of(client, wanted), [])  # a session may be called like a request


def _of(client: Asked, sid: str) -> list[ToldReceipt]:
    of = ask(client, Receipts, "receipts", sid=sid)
    return [ToldReceipt(of.sid, of.name, one) for one in of.receipts]


def _say(one: ToldReceipt, *, whole: bool) -> None:
    r = one.receipt
    said = f"{safe(r.approval_id)}  {safe(one.name, 24)}  {safe(words(r))}"
    say(f"{said} · {safe(problems.request(r.kind))}: {safe(r.title, _TITLE)}")
    if not whole:
        first, *rest = r.steps
        steps = [
            f"{first.stage} {local(first.ts, _FIRST)}",
            *(f"{step.stage} {local(step.ts, _THEN)}" for step in rest),
        ]
        say("    " + " → ".join(safe(step) for step in steps))
        return
    for step in r.steps:
        say(f"    {step.stage:<9} #{step.seq:<6} {safe(local(step.ts, _EXACT))}  {safe(step.text)}")
