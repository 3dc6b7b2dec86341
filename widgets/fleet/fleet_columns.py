"""The columns of the fleet's table: how wide each is on a screen, and what it says of a session. Pure.

Texts are as they are shown: what is untrusted passed the display function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from harness.domain.text import formatting
from harness.projections.state import spend_rate
from harness.views.session_views import SessionRow
from widgets.base import cells
from widgets.base.spend_rate import bars
from widgets.fleet.fleet_filter import repository
from widgets.fleet.fleet_order import View

Cell = tuple[tuple[str, str], ...]
"""(text, colour role) from left to right."""
_TIERS = (0, 80, 120, 180)
_SPARK = 6
_MOST = 30
"""Cells of the widest column that has its room by what stands in it."""
_REST = -1
"""A column that gets the room that the others leave."""
_CLOCK = 6
_FOR = "FOR "
_NO_CAP = 8
"""Cells of a column of money that leave no room for a cap behind it."""
_WORD = 9
"""Cells of a clock and of the word of a state, the blank behind them included."""


@dataclass(frozen=True, slots=True)
class Column:
    """``widths`` in cells, the blank behind it included, by how wide the screen is (0 = not there)."""

    id: str
    title: str
    widths: tuple[int, int, int, int]
    right: bool = False


COLUMNS = (
    Column("state", "STATE", (10, 10, 19, 21)),
    Column("name", "NAME", (16, 18, 18, 30)),
    Column("repo", "REPO", (0, 0, 10, 18)),
    Column("doing", "DOING", (_REST, _REST, _REST, _REST)),
    Column("plan", "PLAN", (0, 7, 7, 8), right=True),
    Column("checks", "CHK", (0, 0, 6, 7), right=True),
    Column("lines", "±", (0, 10, 10, 14), right=True),
    Column("spent", "$/CAP", (8, 8, 13, 16), right=True),
    Column("burn", "$/h", (0, 0, 15, 18), right=True),
    Column("age", "AGE", (5, 5, 5, 6), right=True),
)
TIMELINE = Column("timeline", "", (_REST, _REST, _REST, _REST))
"""In place of all behind the name: what each session did when."""


def longest(rows: Iterable[SessionRow]) -> dict[str, int]:
    """The cells that the longest name and repository take, by their columns."""
    names = 0
    repositories = 0
    for row in rows:
        names = max(names, _takes(row.name))
        repositories = max(repositories, _takes(repository(row)))
    return {"name": names, "repo": repositories}


def _takes(text: str) -> int:
    """Cells of a text as it is shown; for a thousand names, nearly all of which are plain, several times a second."""
    plain = len(text) <= _MOST and text.isascii() and text.isprintable()
    return len(text) if plain else cells.length(cells.safe(text, _MOST))


def placed(width: int, *, timeline: bool = False, needed: Mapping[str, int] = {}) -> list[tuple[Column, int]]:
    """The columns of a screen of this width, each with its cells; together they are never wider than it.

    ``needed``: what the texts of a column take at most, which leaves what is over to what a session does now.
    """
    tier = max(at for at, least in enumerate(_TIERS) if width >= least)
    columns = [*COLUMNS[:2], TIMELINE] if timeline else COLUMNS
    widths = {column.id: _least(column, column.widths[tier], needed) for column in columns}
    rest = max(0, width - sum(max(0, cell) for cell in widths.values()))
    made: list[tuple[Column, int]] = []
    left = width
    for column in columns:
        cell = min(left, rest if widths[column.id] == _REST else widths[column.id])
        if cell:
            made.append((column, cell))
            left -= cell
    return made


def _least(column: Column, cell: int, needed: Mapping[str, int]) -> int:
    """What a column takes of its cells; its title, an arrow and a blank always have room."""
    return min(cell, max(needed.get(column.id, cell), len(column.title) + 1) + 1) if cell > 0 else cell


def sortable(width: int) -> list[str]:
    """The ids of the columns that a screen of this width shows, from left to right."""
    return [column.id for column, _ in placed(width)]


def column_at(width: int, x: int, *, timeline: bool = False, needed: Mapping[str, int] = {}) -> str:
    """The id of the column at a cell that sessions can be ordered by; empty when there is none."""
    for column, cell in placed(width, timeline=timeline, needed=needed):
        if x < cell:
            return "" if column is TIMELINE else column.id
        x -= cell
    return ""


def arrow(view: View) -> str:
    """Which way the sorted column goes; of an age, the greatest is the earliest time."""
    return "↓" if view.descending != (view.sort == "age") else "↑"


def head(column: Column, view: View, cell: int) -> Cell:
    """The title of a column, with an arrow when the sessions stand in its order; behind that of the state stands what
    its clock is.
    """
    order = arrow(view) if column.id == view.sort else ""
    role = "heading" if order else "title"
    if column.id == "state":
        room = max(0, cell - len(_FOR))
        title = column.title if room > _WORD else column.title[0]
        return (cells.fit(f"  {title}{order}", room), role), (cells.fit(_FOR, cell - room), "title")
    alone = column.id == "spent" and cell <= _NO_CAP
    return ((_set(("SPENT" if alone else column.title) + order, cell, column.right), role),)


def _set(text: str, cell: int, right: bool) -> str:
    """A text in a cell, with at least one blank behind it."""
    room = max(0, cell - 1)
    shown = cells.clip(text, room)
    return cells.fit(" " * (room - cells.length(shown)) + shown if right else shown, cell)


def lasted(row: SessionRow, now: float) -> str:
    """For how long it has been so: a clock while it runs, else an age."""
    since = formatting.parse_ts(row.since)
    if row.state != "running" or since is None:
        return formatting.age(row.since, now)
    clock = formatting.clock(now - since)
    return clock if len(clock) < _CLOCK else formatting.span(now - since)


def text_of(row: SessionRow, column: Column, cell: int, now: float) -> Cell:
    """What a column says of a session, exactly as wide as its cell."""
    return _TEXTS[column.id](row, cell, now)


def _state(row: SessionRow, cell: int, now: float) -> Cell:
    role = cells.role(row.state)
    clock = lasted(row, now)
    mark = cells.row_mark(row) + " "
    room = cell - 2
    if room < _WORD + _CLOCK:
        return ((mark, role), (_set(clock, room, right=True), "quiet"))
    return (
        (mark, role),
        (cells.fit(cells.safe(row.state, _WORD - 1), _WORD), role),
        (_set(clock, room - _WORD, right=True), "quiet"),
    )


def _name(row: SessionRow, cell: int, now: float) -> Cell:
    return ((cells.fit(cells.safe(row.name, cell - 1), cell), "name"),)


def _repo(row: SessionRow, cell: int, now: float) -> Cell:
    return ((cells.fit(cells.safe(repository(row), cell - 1), cell), "quiet"),)


def _doing(row: SessionRow, cell: int, now: float) -> Cell:
    return ((cells.fit(cells.safe(cells.doing(row), cell - 1), cell), "text"),)


def _plan(row: SessionRow, cell: int, now: float) -> Cell:
    done = row.plan_passed == row.plan_total
    figures = f"{row.plan_passed}/{row.plan_total}" if row.plan_total else "–"
    return ((_set(figures, cell, right=True), "good" if row.plan_total and done else "quiet"),)


def _checks(row: SessionRow, cell: int, now: float) -> Cell:
    if row.no_criterion:
        return ((_set(cells.NO_CRITERION, cell, right=True), "attention"),)
    figures = f"{row.checks_passed}/{row.checks_total}" if row.checks_total else "–"
    done = row.checks_total and row.checks_passed == row.checks_total
    return ((_set(figures, cell, right=True), "good" if done else "quiet"),)


def _lines(row: SessionRow, cell: int, now: float) -> Cell:
    return ((_set(cells.lines(row), cell, right=True), "text" if row.files else "quiet"),)


def _spent(row: SessionRow, cell: int, now: float) -> Cell:
    near = row.cap_nano is not None and row.spent_nano + row.reserved_nano >= row.cap_nano * 0.9
    spent = formatting.spend_cell(row.spent_nano, row.unknown_nano)
    both = f"{spent}/{formatting.cap_text(row.cap_nano)}" if row.cap_nano is not None else spent
    shown = both if cells.length(both) < cell and cell > _NO_CAP else spent
    return ((_set(shown, cell, right=True), "attention" if near else "text"),)


def _burn(row: SessionRow, cell: int, now: float) -> Cell:
    rate = spend_rate.per_hour(row.burned_step, row.burned, now)
    if not rate:
        return ((_set("", cell, right=True), "quiet"),)
    spark = bars(spend_rate.lately(row.burned_step, row.burned, now)[-_SPARK:])
    return (
        (_set(formatting.money(rate), cell - _SPARK - 1, right=True), "quiet"),
        (cells.fit(f"{spark:>{_SPARK}}", _SPARK + 1), "meter"),
    )


def _age(row: SessionRow, cell: int, now: float) -> Cell:
    return ((_set(formatting.age(row.created, now), cell, right=True), "quiet"),)


_TEXTS: Mapping[str, Callable[[SessionRow, int, float], Cell]] = {
    "state": _state,
    "name": _name,
    "repo": _repo,
    "doing": _doing,
    "plan": _plan,
    "checks": _checks,
    "lines": _lines,
    "spent": _spent,
    "burn": _burn,
    "age": _age,
}
