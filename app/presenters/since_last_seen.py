"""What is told of sessions since somebody looked: the figures and lines that the verb and the screen share. Pure; texts
of others are raw.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from harness.domain.text.formatting import counted, parse_ts, stretch, usd, zoned
from harness.reports.briefing import KINDS, Brief, Figures, Line
from harness.views.session_views import ERRORS, NEEDS_YOU, SessionRow, TroubleView

Troubles = tuple[TroubleView, ...]
"""What is wrong with the fleet itself now."""
EMPTY = Brief(Figures(), (), (), -1)


@dataclass(frozen=True, slots=True)
class Told:
    """What is told of one session: ``problem`` says why nothing of it could be read."""

    row: SessionRow
    brief: Brief
    upcoming: str = ""
    problem: str = ""

    @property
    def needs(self) -> int:
        """How many items of the queue are its own: open requests, or that it failed, stands still or rings, unless that
        was put off.
        """
        return len(self.brief.needs) + (self.row.group == ERRORS and not self.row.put_off)

    @property
    def quiet(self) -> bool:
        """Nothing happened in it, and it needs nobody."""
        return not (self.brief.lines or self.needs or self.brief.figures.replies or self.problem)

    @property
    def do(self) -> str:
        """What its person can do, where it needs one; empty for any other."""
        return self.row.do if self.row.group in (NEEDS_YOU, ERRORS) else ""


def first_look(rows: Iterable[SessionRow], day_ago: str) -> str:
    """Where the first look back begins: a day ago, or with the first session when that is younger."""
    return max(day_ago, min((row.created for row in rows if row.created), default=""))


def unmoved(row: SessionRow, start: str) -> bool:
    """True when nothing was recorded of it since ``start``, so that its log need not be asked."""
    return row.last_ts < start and not row.approvals and row.seq >= 0


def ranked(told: Sequence[Told]) -> list[Told]:
    """Those of which something is told: what needs somebody first, then what went wrong, then where most happened."""
    return sorted((one for one in told if not one.quiet), key=_worth)


def _worth(one: Told) -> tuple[bool, bool, int, str]:
    group = one.row.group
    return (group != NEEDS_YOU, group != ERRORS, -len(one.brief.lines), one.row.sid)


def total(told: Sequence[Told]) -> Figures:
    """All of their figures together."""
    return sum((one.brief.figures for one in told), Figures())


def headline(told: Sequence[Told], start: str, now: datetime) -> str:
    """The fleet in one line."""
    return f"{since(start, now)}: {' · '.join(moved(told))}"


def since(start: str, now: datetime) -> str:
    """What is looked back on: how long, and from when on."""
    then = parse_ts(start)
    ago = stretch(now.timestamp() - then) if then is not None else start
    return f"Since {ago} ago ({zoned(start)})"


def moved(told: Sequence[Told]) -> list[str]:
    """What happened in the whole fleet, each in words."""
    moved = sum(one.brief.figures.records for one in told)
    needs = sum(one.needs for one in told)
    parts = [f"{moved} of {counted(len(told), 'session')} moved", *figures(total(told))]
    if needs:
        parts.append(f"{needs} needs you" if needs == 1 else f"{needs} need you")
    return parts


def figures(f: Figures) -> list[str]:
    """What there was of, each in words."""
    kinds = (
        (f.passed, "passed", "passed"),
        (f.commits, "commit", "commits"),
        (f.asked, "question to you", "questions to you"),
        (f.decided, "decision", "decisions"),
        (f.restarts, "restart", "restarts"),
        (f.anomalies, "anomaly", "anomalies"),
    )
    found = [f"{count} {one if count == 1 else more}" for count, one, more in kinds if count]
    return [*found, usd(f.spent_nano)] if f.replies else found


def in_order(one: Told) -> list[Line]:
    """What it needs first, then by kind, and in the order of the log."""
    lines = [*one.brief.needs, *one.brief.lines]
    return sorted(lines, key=lambda line: (KINDS.index(line.kind), line.seq))
