"""How a session and the title of a group read as lines of the list: two lines a session, one where space is short, and
columns where it is wide.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from operator import attrgetter

import msgspec
from rich.style import Style
from textual.strip import Strip

from harness.domain.text import formatting
from harness.projections.state import spend_rate
from harness.views.session_views import DONE, ERRORS, NEEDS_YOU, REVIEW, RUNNING, SessionRow
from widgets.base import cells
from widgets.base.cells import Line
from widgets.base.spend_rate import bars
from widgets.session.session_order import SessionItem

_TITLE_ROLES = {NEEDS_YOU: "call", ERRORS: "alarm"}
_STATE_WIDTH = 8
_OF_COUNTS = ("checks_passed", "checks_total", "still_passing", "plan_passed", "plan_total", "no_criterion")
_FIRST = attrgetter("sid", "name", "state", "asks", "proof", *_OF_COUNTS)
_OF_LINES = ("group", "files", "lines_added", "lines_removed")
_SECOND = attrgetter(
    "sid",
    "goal",
    "state",
    "detail",
    "next",
    "spent_nano",
    "reserved_nano",
    "unknown_nano",
    "cap_nano",
    *_OF_LINES,
    *_OF_COUNTS,
)
"""What of a row its first and its second line show."""
_TABLE = 72
_NAME = 18
"""Cells that names have in the table at most, and ``_SHORT`` at least."""
_SHORT = 9
_SPARK = 5
_WHOLE = 44
"""From so many cells on, one line holds counts, state and spend."""
_BURN = 52
"""From so many cells on, a row shows how fast it spent lately."""
_COLUMNS = 42
"""Cells of the table beside the name and what a session does now."""
_HEADS = f" {'pass':>5} {'±':>8} {'spent':>7} {'burn':>5} {'for':>5} "
"""What the columns of the table are, in the order in which they stand."""
_BEHIND_SPENT = 13
_BEFORE_SPENT = 9
"""Cells of the table's columns behind what was spent, and of the one before it."""
_DOING = 10
"""Cells that what a session does now has in its one line at least, where it stands there."""
_USUAL = {NEEDS_YOU: "waiting", RUNNING: "running", REVIEW: "done", DONE: "done"}
"""The state that the title of a group says already."""


def _burn(row: SessionRow) -> str:
    """How fast it spent lately, as bars."""
    return f" {bars(spend_rate.lately(row.burned_step, row.burned, time.time())[-_SPARK:]):>{_SPARK}}"


def is_table(width: int) -> bool:
    """In so many cells the list is a table with one line a session."""
    return width >= _TABLE


def names_of(rows: Iterable[SessionRow]) -> int:
    """Cells that the names of these sessions have where they stand in a column."""
    longest = max((cells.length(cells.safe(row.name, _NAME - 1)) for row in rows), default=0)
    return max(_SHORT, min(_NAME, longest + 1))


def lasted(row: SessionRow, now: float) -> str:
    """For how long it has been so: a clock while it runs, else an age."""
    since = formatting.parse_ts(row.since)
    return (
        formatting.clock(now - since)
        if row.state == "running" and since is not None
        else formatting.age(row.since, now)
    )


class Look(msgspec.Struct, frozen=True):
    """What decides how all lines look: cells of a line and of its names, whether a session has one line, which one is
    selected, whether the list has the focus, and the styles by role.
    """

    width: int
    names: int
    dense: bool
    selected: str
    focused: bool
    styles: Mapping[str, Style]
    base: Style

    def face(self, item: SessionItem, age: str) -> tuple[object, ...]:
        """All that decides how a line looks, but for size, theme and focus, which have everything painted again."""
        row = item.row
        if row is None:
            return item.group, item.count, item.parked
        shown = _FIRST(row) if item.part == 0 else _SECOND(row)
        if self.as_table:
            shown = _FIRST(row), _SECOND(row), row.burned_step, row.burned
        elif self.dense or self.with_burn:
            shown = shown, row.spent_nano, row.unknown_nano, row.group, row.burned_step, row.burned
        return item.part, self.dense, row.sid == self.selected, age, shown

    def title(self, item: SessionItem, *, first: bool) -> Strip:
        """The title of a group; the ``first`` one has those of the columns."""
        style = self.styles[_TITLE_ROLES.get(item.group, "title")]
        line = Line(self.width)
        if self.as_table and first:
            line.right(_HEADS, self.styles["quiet"])
        parked = f" · {item.parked} parked" if item.parked else ""
        line.left(f" {item.group.upper()} ", style)
        return line.left(f"{item.count}{parked}", self.styles["quiet"]).strip(self.base)

    def session(self, row: SessionRow, part: int, age: str) -> Strip:
        """Part 0 or 1 of a session; ``age``: how long it has been so."""
        chosen = row.sid == self.selected
        base = self.base
        if chosen:
            base = base + self.styles["chosen" if self.focused else "selected"]
        state = self.styles[cells.role(row.state)]
        edge = self.styles["meter"] if self.focused else self.styles["quiet"]
        line = Line(self.width).left("▌" if chosen else " ", edge)
        if part == 0:
            line.left(cells.row_mark(row) + " ", state)
            if self.dense:
                return self._dense_line(row, age, line, state, base)
            line.right(f" {age:>4} ", self.styles["quiet"]).right(f" {row.state:>{_STATE_WIDTH}}", state)
            return line.left(cells.safe(row.name, line.room - 1), self.styles["name"]).strip(base)
        held = bool(row.next) and row.state != "waiting"
        if self.as_table:
            return self._more_of_table(row, line, base)
        if not held:
            self._money(row, line)  # why nothing goes on needs the room more than what it cost
        return (
            line.left("  ", base)
            .left(cells.safe(cells.doing(row), line.room - 1), self.styles["text" if held else "quiet"])
            .strip(base)
        )

    @property
    def as_table(self) -> bool:
        """One line a session, in columns."""
        return is_table(self.width)

    @property
    def with_burn(self) -> bool:
        """A row shows how fast it spent lately."""
        return self.width >= _BURN

    def _table_line(self, row: SessionRow, age: str, line: Line, base: Style) -> Strip:
        """One line with columns: name, what it does now, plan or checks, lines, spend, how fast, for how long. Words
        of the selected session that have no room stand below, and only there.
        """
        quiet = self.styles["quiet"]
        counts = f"{row.plan_passed}/{row.plan_total}" if row.plan_total else self._checks(row)
        near = row.cap_nano is not None and row.spent_nano + row.reserved_nano >= row.cap_nano * 0.9
        line.right(f" {age:>5} ", quiet).right(_burn(row), self.styles["meter"])
        spent = formatting.spend_cell(row.spent_nano, row.unknown_nano)
        line.right(f" {spent:>7}", self.styles["attention"] if near else quiet)
        line.right(f" {cells.lines(row):>8}", self.styles["text"]).right(f" {counts:>5}", quiet)
        line.left(cells.fit(cells.safe(row.name, self.names - 1), self.names), self.styles["name"])
        if row.sid == self.selected and self._cut(row):
            return line.strip(base)
        doing = cells.safe(cells.doing(row), line.room)
        return line.left(doing, self.styles["text" if row.next else "quiet"]).strip(base)

    def _cut(self, row: SessionRow) -> bool:
        """What it does now has no room beside the columns of the table."""
        room = self.width - _COLUMNS - self.names
        return cells.length(cells.safe(cells.doing(row), room + 1)) > room

    def _more_of_table(self, row: SessionRow, line: Line, base: Style) -> Strip:
        """What the columns of the selected session leave out, each under the column that it belongs to: its words when
        they had no room, else its goal; its checks beside a plan; its cap. Words that need the room have all of it.
        """
        cut = self._cut(row)
        said = cells.doing(row) if cut else f"goal: {row.goal}"
        role = "text" if cut and row.next else "quiet"
        if cut and cells.length(cells.safe(said, self.width)) > line.room - _COLUMNS:
            return line.left("  ", base).left(cells.safe(said, line.room - 1), self.styles[role]).strip(base)
        quiet = self.styles["quiet"]
        near = row.cap_nano is not None and row.spent_nano + row.reserved_nano >= row.cap_nano * 0.9
        cap = f"of {formatting.cap_text(row.cap_nano)}" if row.cap_nano is not None else ""
        line.right(" " * _BEHIND_SPENT, quiet).right(f" {cap:>7}", self.styles["attention"] if near else quiet)
        line.right(" " * _BEFORE_SPENT, quiet).right(f" {self._checks(row) if row.plan_total else '':>5}", quiet)
        return line.left("  ", base).left(cells.safe(said, line.room - 1), self.styles[role]).strip(base)

    def _dense_line(self, row: SessionRow, age: str, line: Line, state: Style, base: Style) -> Strip:
        if self.as_table:
            return self._table_line(row, age, line, base)
        whole = self.width >= _WHOLE
        usual = row.state == _USUAL.get(row.group)
        line.right(f" {age:>4} ", self.styles["quiet"])
        if self.with_burn:
            line.right(_burn(row), self.styles["meter"])
        if self._spend_first(row):
            line.right(f" {formatting.spend_cell(row.spent_nano, row.unknown_nano):>7}", self.styles["quiet"])
        if whole:
            counts = f"{row.plan_passed}/{row.plan_total}" if row.plan_total else self._checks(row)
            line.right(f" {counts:>5}", self.styles["quiet"])
        names = min(self.names, line.room - _DOING)
        if names >= _SHORT:
            line.left(cells.fit(cells.safe(row.name, names - 1), names), self.styles["name"])
            if row.sid == self.selected:  # what it does stands below it
                return line.left("" if usual else row.state, state).strip(base)
            if not usual:
                line.left(f"{row.state} ", state)
            return line.left(cells.safe(cells.doing(row), line.room), self.styles["quiet"]).strip(base)
        if not usual:
            line.right(f" {row.state:>{_STATE_WIDTH}}", state)
        return line.left(cells.safe(row.name, line.room - 1), self.styles["name"]).strip(base)

    def _spend_first(self, row: SessionRow) -> bool:
        """Of one line a session: what it spent stands there; in a narrow list what it does now takes that room."""
        return self.width >= _WHOLE

    def _checks(self, row: SessionRow) -> str:
        if row.no_criterion:
            return cells.NO_CRITERION
        mark = ""
        if row.checks_passed == row.checks_total:
            mark = cells.STILL if row.still_passing == row.checks_total else "✓"
        return f"{mark}{row.checks_passed}/{row.checks_total}" if row.checks_total else ""

    def _money(self, row: SessionRow, line: Line) -> None:
        """Right part of the second line: checks, spend and a meter against the cap; in a narrow list that only from
        half of the cap on, so that what goes on has the room.
        """
        width = self.width
        wide = width >= 40
        whole = self.dense and width >= _WHOLE
        line.right(" ", Style.null())
        if self.with_burn and not whole:
            line.right(_burn(row), self.styles["meter"])
        spent = row.spent_nano + row.reserved_nano
        if row.cap_nano is not None and (wide or 2 * spent >= row.cap_nano):
            used, rest = cells.bar(spent, row.cap_nano, 6 if wide else 4)
            near = row.cap_nano > 0 and spent >= row.cap_nano * 0.9
            line.right(rest, self.styles["quiet"]).right(used, self.styles["attention" if near else "meter"])
            line.right(" ", Style.null())
        if not (self.dense and self._spend_first(row)):
            line.right(formatting.spend_cell(row.spent_nano, row.unknown_nano), self.styles["quiet"])
        if row.files and (wide or row.group == REVIEW):
            line.right(f"{cells.lines(row)} ", self.styles["text"])
        if row.plan_total:
            line.right(" ", Style.null())
            for text, role in reversed(cells.plan(row, 6 if wide else 3)):
                line.right(text, self.styles[role])
        elif row.no_criterion:
            line.right(
                f"{cells.NO_CRITERION} no criterion " if wide else f"{cells.NO_CRITERION} ", self.styles["attention"]
            )
        elif not whole and (checks := self._checks(row)):
            line.right(checks + " ", self.styles["good" if row.checks_passed == row.checks_total else "quiet"])
        line.right(" ", Style.null())
