"""The verb that tells what happened since a person last looked, and what needs one."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta

import msgspec

from app.cli.base import bundle_source, exits, since
from app.cli.base.arguments import Usage
from app.cli.base.context import Context
from app.cli.base.offline_fleet import OfflineReader
from app.cli.base.output import emit, safe, say, wrapped
from app.client import last_seen
from app.client.replies import ask
from app.presenters.since_last_seen import (
    EMPTY,
    Told,
    Troubles,
    figures,
    first_look,
    headline,
    in_order,
    ranked,
    total,
    unmoved,
)
from app.review.pull_text import code
from harness.domain.outcomes import PROOFS
from harness.domain.text.formatting import local
from harness.protocol.client import Client, SupervisorError
from harness.reports.briefing import Briefed, Line
from harness.views.replies import Sessions, SessionShown
from harness.views.session_views import SessionRow, TroubleView

_FIRST = timedelta(hours=24)
"""How far back the first briefing goes."""
_NAME = 24
_ENTRY = 200
_PATIENCE_S = 120.0
_HANGING = 4
"""Columns before what goes on from the line above."""


def brief(ctx: Context, args: argparse.Namespace) -> int:
    """Shown to a person in words, the next one begins where this one ends; ``--since``, ``--json``, ``--md`` and IDs
    leave that mark as it is.
    """
    if args.json and args.md:
        raise Usage("--json and --md are two forms of the same; choose one")
    now = datetime.now(UTC)
    try:
        start = since.stamp(args.since, now) if args.since is not None else last_seen.last(ctx.folders.state)
    except ValueError as exc:
        raise Usage(str(exc)) from exc
    until = since.as_recorded(now)
    if len(args.ids) == 1 and (file := bundle_source.file_of(args.ids[0])) is not None:
        with bundle_source.reader(file) as (reader, sid):
            fleet = ask(reader, Sessions, "sessions")
            start = start if args.since is not None else fleet.rows[0].created
            told = _gathered(reader, fleet.rows, [sid], start)
    else:
        with ctx.look() as client:
            client.wait_up_to(_PATIENCE_S)
            fleet = ask(client, Sessions, "sessions")
            start = start or first_look(fleet.rows, since.as_recorded(now - _FIRST))
            told = _gathered(client, fleet.rows, args.ids, start)
    troubles = fleet.fleet.troubles
    if args.json:
        figures_of = _fleet(told) | {"troubles": msgspec.to_builtins(troubles)}
        emit({"since": start, "until": until, "fleet": figures_of, "sessions": [_wire(one) for one in told]})
    elif args.md:
        for line in markdown(told, start, now, troubles):
            say(line)
    else:
        for line in text(told, start, now, troubles):
            say("\n".join(wrapped(line, ctx.width, _HANGING) if sys.stdout.isatty() else [line]))
        if args.since is None and not args.ids:
            last_seen.remember(ctx.folders.state, until)
    return exits.OK


def _gathered(client: Client | OfflineReader, rows: list[SessionRow], ids: list[str], start: str) -> list[Told]:
    if ids:
        wanted = {ask(client, SessionShown, "session", sid=sid).row.sid for sid in ids}
        rows = [row for row in rows if row.sid in wanted]
    return [_one(client, row, start) for row in rows]


def _one(client: Client | OfflineReader, row: SessionRow, start: str) -> Told:
    """A session of which nothing was recorded meanwhile is not asked about; one that cannot be read hides no other."""
    if unmoved(row, start):
        return Told(row, EMPTY)
    try:
        told = ask(client, Briefed, "brief", sid=row.sid, since=start)
    except SupervisorError as exc:
        return Told(row, EMPTY, problem=str(exc))
    return Told(row, told.brief, told.upcoming)


# -- as data -------------------------------------------------------------------------------------------


def _fleet(told: Iterable[Told]) -> dict[str, object]:
    every = list(told)
    return msgspec.structs.asdict(total(every)) | {
        "sessions": len(every),
        "moved": sum(one.brief.figures.records for one in every),
        "needs_you": sum(one.needs for one in every),
    }


def _wire(one: Told) -> dict[str, object]:
    made: dict[str, object] = msgspec.to_builtins(one.brief)
    named = {"sid": one.row.sid, "name": one.row.name}
    lines = [named | msgspec.structs.asdict(line) for line in one.brief.lines]
    needs = [named | msgspec.structs.asdict(line) for line in one.brief.needs]
    return made | {
        **named,
        "state": one.row.state,
        "lines": lines,
        "needs": needs,
        "next": one.row.next,
        "do": one.row.do,
        "command": one.row.command,
        "upcoming": one.upcoming,
        "problem": one.problem,
    }


# -- in words ------------------------------------------------------------------------------------------


def text(told: list[Told], start: str, now: datetime, troubles: Troubles = ()) -> Iterator[str]:
    """For a terminal; every text of others has passed the display function."""
    yield headline(told, start, now)
    yield from (f"  fleet: {_wrong(one, plain)}" for one in troubles)
    for one in ranked(told):
        yield ""
        yield _title(one, plain)
        for line in in_order(one):
            yield f"  {line.kind:<8} {_clock(line)}  {_name(one)}#{line.seq:<6} {safe(line.text)}"
        yield from (f"  {rest}" for rest in _rest(one, plain))
    if quiet := _quiet(told):
        yield ""
        yield f"nothing new: {quiet}"
    if any(not one.quiet for one in told):
        yield ""
        yield "record N of a session: watchfloor logs SESSION --after N-1"


def markdown(told: list[Told], start: str, now: datetime, troubles: Troubles = ()) -> Iterator[str]:
    """The same as Markdown, in which texts of others are code: nothing in them is a link, a name or markup."""
    yield f"# {headline(told, start, now)}"
    if troubles:
        yield ""
    yield from (f"- **fleet** {_wrong(one, code)}" for one in troubles)
    for one in ranked(told):
        yield ""
        yield f"## {_title(one, code)}"
        yield ""
        for line in in_order(one):
            yield f"- **{line.kind}** {_clock(line)} {code(f'{one.row.name}#{line.seq}')} {code(line.text)}"
        yield from (f"- {rest}" for rest in _rest(one, code))
    if quiet := _quiet(told):
        yield ""
        yield f"Nothing new: {code(quiet)}"


def plain(raw: str) -> str:
    """Text of others in a line for a terminal."""
    return safe(raw)


def _wrong(one: TroubleView, quoted: Callable[[str], str]) -> str:
    cause = f": {quoted(one.cause)}" if one.cause else ""
    mend = f"; {safe(one.do)}" if one.do else ""
    return f"{safe(one.headline)}{cause}{mend}" + (f" ({safe(one.command)})" if one.command else "")


def _title(one: Told, quoted: Callable[[str], str]) -> str:
    mark = f", {PROOFS[one.row.proof]}" if one.row.proof else ""
    head = f"{quoted(one.row.name)} ({safe(one.row.sid)}) {safe(one.row.state)}{mark}"
    return " · ".join([head, *figures(one.brief.figures)])


def _rest(one: Told, quoted: Callable[[str], str]) -> Iterator[str]:
    if one.problem:
        yield f"cannot be read: {quoted(one.problem)}"
    if one.brief.forgotten:
        yield f"older lines are in its log only: watchfloor logs {safe(one.row.sid)}"
    if one.upcoming:
        yield f"next of its plan: {quoted(one.upcoming[:_ENTRY])}"
    if one.row.next:
        yield f"next: {quoted(one.row.next)}"
    if one.do:
        yield f"you: {quoted(one.do)}" + (f" ({safe(one.row.command)})" if one.row.command else "")


def _quiet(told: Iterable[Told]) -> str:
    return ", ".join(_name(one) for one in told if one.quiet)


def _name(one: Told) -> str:
    return safe(one.row.name, _NAME)


def _clock(line: Line) -> str:
    return safe(local(line.ts, "%m-%d %H:%M"))
