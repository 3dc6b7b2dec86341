"""What the title of a pane says of its session, in the cells that it has. Pure."""

from __future__ import annotations

from typing import NamedTuple

from harness.domain.states import State
from harness.domain.text import formatting
from harness.views.session_views import SessionRow
from widgets.base import cells

ZOOMED = "zoomed "
PINNED = "pinned "
_PLAN = 12
"""Cells of a plan's meter, as long as its figures have theirs; fewer than the least say nothing."""
_LEAST = 3
_EDGES = 5
"""Cells of a title's ends and of a row's mark."""


class Said(NamedTuple):
    """The words of a title."""

    name: str
    state: str
    plan: str
    spent: str


def said(row: SessionRow, width: int, *, held: str) -> Said:
    """As much as fits beside the meter of a plan: where it is narrow, the word before the figures goes first, then the
    cap, then the word for running, which its mark shows.
    """
    spent = formatting.spend_cell(row.spent_nano, row.unknown_nano)
    capped = f" {spent}/{formatting.cap_text(row.cap_nano)} "
    plain = f" {spent} "
    state = f" {row.state} "
    quiet = " " if row.state == State.RUNNING else state
    figures = cells.plan(row, 0)[0][0] if row.plan_total else ""
    short = figures.removeprefix("plan ")
    around = _EDGES + len(held)
    tried = ((state, figures, capped), (state, short, capped), (state, short, plain), (quiet, short, plain))
    made = [_named(row, width - around, *texts) for texts in tried]
    fitting = (one for one in made if around + sum(map(cells.length, one)) + _LEAST + 1 <= width)
    return made[0] if not row.plan_total else next(fitting, made[-1])


def _named(row: SessionRow, room: int, state: str, plan: str, spent: str) -> Said:
    return Said(cells.safe(row.name, max(8, (room - len(spent)) * 2 // 3)), state, plan, spent)


def meter(room: int) -> int:
    """Cells of the meter where so many are left."""
    return min(_PLAN, room) if room >= _LEAST else 0
