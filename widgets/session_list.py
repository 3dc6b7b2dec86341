"""The list of sessions as one line-API widget: groups with counts, two lines a session, or one when space is short."""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass
from operator import attrgetter

from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from harness.events import burned, words
from harness.events.views import DONE, ERRORS, GROUPS, NEEDS_YOU, REVIEW, RUNNING, SessionRow
from widgets import cells
from widgets.burn import bars
from widgets.cells import Line
from widgets.lines import PaintedLines
from widgets.palette import palette

TITLES = {group: group.upper() for group in GROUPS}
_TITLE_ROLES = {NEEDS_YOU: "call", ERRORS: "alarm"}
_STATE_WIDTH = 8
_OF_COUNTS = ("checks_passed", "checks_total", "plan_passed", "plan_total", "no_criterion")
_FIRST = attrgetter("sid", "name", "state", "asks", "verified", *_OF_COUNTS)
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
"""From so many cells on, the list is a table with one line a session."""
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
_HEADS = f" {'plan':>5} {'±':>8} {'spent':>7} {'burn':>5} {'for':>5} "
"""What the columns of the table are, in the order in which they stand."""
_DOING = 10
"""Cells that what a session does now has in its one line at least, where it stands there."""
_USUAL = {NEEDS_YOU: "waiting", RUNNING: "running", REVIEW: "done", DONE: "done"}
"""The state that the title of a group says already."""


def ordered(rows: Iterable[SessionRow]) -> list[SessionRow]:
    """Floor order: by group; who waits or stands longest first, running in order of launch, newest ending first.

    Stable between pushes.
    """
    groups: dict[str, list[SessionRow]] = {name: [] for name in GROUPS}
    for row in rows:
        groups.get(row.group, groups[RUNNING]).append(row)
    for name in (NEEDS_YOU, ERRORS):
        groups[name].sort(key=lambda r: (r.since, r.sid))
    groups[RUNNING].sort(key=lambda r: (r.created, r.sid))
    for name in (REVIEW, DONE):
        groups[name].sort(key=lambda r: (r.last_ts, r.sid), reverse=True)
    return [row for name in GROUPS for row in groups[name]]


@dataclass(frozen=True, slots=True)
class Item:
    """One screen line: a group title (``row`` None) with its count, or part 0/1 of a session."""

    group: str
    row: SessionRow | None = None
    part: int = 0
    count: int = 0


def layout(rows: list[SessionRow], selected: str, *, dense: bool) -> list[Item]:
    """The lines of the list. Dense shows one line a session, and the second one only for the selected."""
    items: list[Item] = []
    for group in GROUPS:
        members = [r for r in rows if (r.group if r.group in TITLES else RUNNING) == group]
        if not members:
            continue
        items.append(Item(group, count=len(members)))
        for row in members:
            items.append(Item(group, row, 0))
            if not dense or row.sid == selected:
                items.append(Item(group, row, 1))
    return items


def _burn(row: SessionRow) -> str:
    """How fast it spent lately, as bars."""
    return f" {bars(burned.lately(row.burned_step, row.burned, time.time())[-_SPARK:]):>{_SPARK}}"


def _lasted(row: SessionRow, now: float) -> str:
    """For how long it has been so: a clock while it runs, else an age."""
    since = words.parse_ts(row.since)
    return words.clock(now - since) if row.state == "running" and since is not None else words.age(row.since, now)


class SessionList(PaintedLines, ScrollView, can_focus=True):
    """Shows `SessionRow`s; the selection is pinned to a session id, so a re-sort never moves it to another session."""

    DEFAULT_CSS = """
    SessionList {
        background: $background;
        overflow-x: hidden;
        scrollbar-size-vertical: 1;
        &:focus { background-tint: $foreground 0%; }
    }
    """

    class Moved(Message):
        """The selection is now on another session."""

        def __init__(self, sid: str) -> None:
            super().__init__()
            self.sid = sid

    class Opened(Message):
        """The user opened the selected session."""

        def __init__(self, sid: str) -> None:
            super().__init__()
            self.sid = sid

    def __init__(self, *, dom_id: str | None = None) -> None:
        super().__init__(id=dom_id)
        self._rows: list[SessionRow] = []
        self._items: list[Item] = []
        self._ages: list[str] = []
        self._faces: list[tuple[object, ...]] = []
        self._selected = ""
        self._dense = False
        self._for_names = _NAME

    @property
    def selected(self) -> str:
        """Id of the selected session; empty when there is none."""
        return self._selected

    @property
    def rows(self) -> list[SessionRow]:
        """The sessions in the order shown."""
        return self._rows

    def set_rows(self, rows: Iterable[SessionRow]) -> None:
        """Take the newest rows; repaints only the lines that changed when the structure stayed the same."""
        before = self._items
        self._rows = ordered(rows)
        sids = [r.sid for r in self._rows]
        if self._selected not in sids:
            self._select(self._neighbour(before, set(sids)) or (sids[0] if sids else ""))
        self._relayout()

    def select(self, sid: str) -> bool:
        """Put the selection on a session; False when it is not in the list."""
        if all(r.sid != sid for r in self._rows):
            return False
        self._select(sid)
        self._relayout()
        self._reveal()
        return True

    def move(self, step: int) -> None:
        """Move the selection by so many sessions, staying inside the list."""
        sids = [r.sid for r in self._rows]
        if not sids:
            return
        at = sids.index(self._selected) if self._selected in sids else 0
        self.select(sids[max(0, min(len(sids) - 1, at + step))])

    def tick(self, now: float) -> None:
        """Repaint the lines whose shown age changed."""
        self._ages = self._age_column(now)
        self._repaint()

    def _select(self, sid: str) -> None:
        if sid != self._selected:
            self._selected = sid
            self.post_message(self.Moved(sid))

    def _neighbour(self, before: list[Item], alive: set[str]) -> str:
        """The nearest session to the one that vanished."""
        shown = [item.row.sid for item in before if item.row is not None and item.part == 0]
        if self._selected not in shown:
            return ""
        at = shown.index(self._selected)
        return next((sid for sid in shown[at + 1 :] + shown[:at][::-1] if sid in alive), "")

    def _age_column(self, now: float) -> list[str]:
        return [_lasted(item.row, now) if item.row is not None and item.part == 0 else "" for item in self._items]

    def _relayout(self) -> None:
        height = self.size.height
        groups = len({r.group for r in self._rows})
        longest = max((cells.length(cells.safe(row.name, _NAME - 1)) for row in self._rows), default=0)
        names = max(_SHORT, min(_NAME, longest + 1))
        if names != self._for_names:
            self._for_names = names
            self.refresh()
        self._dense = self._as_table or (bool(height) and len(self._rows) * 2 + groups > height)
        self._items = layout(self._rows, self._selected, dense=self._dense)
        self._ages = self._age_column(time.time())
        size = Size(self.scrollable_content_region.width, len(self._items))
        if self.virtual_size != size:
            self.virtual_size = size
            self.refresh()
        self._repaint()

    def _repaint(self) -> None:
        """Have those lines painted again that look different now: under a flood rows change all the time, and few of
        them on the screen.
        """
        before = self._faces
        self._faces = [self._face(item, age) for item, age in zip(self._items, self._ages, strict=True)]
        if len(before) == len(self._faces):
            self._refresh_lines([y for y, (old, new) in enumerate(zip(before, self._faces, strict=True)) if old != new])
        else:
            self.refresh()

    def _face(self, item: Item, age: str) -> tuple[object, ...]:
        """All that decides how a line looks, but for size, theme and focus, which have everything painted again."""
        row = item.row
        if row is None:
            return item.group, item.count
        shown = _FIRST(row) if item.part == 0 else _SECOND(row)
        if self._as_table:
            shown = _FIRST(row), _SECOND(row), row.burned_step, row.burned
        elif self._dense or self._with_burn:
            shown = shown, row.spent_nano, row.unknown_nano, row.group, row.burned_step, row.burned
        return item.part, self._dense, row.sid == self._selected, age, shown

    def _refresh_lines(self, lines: list[int]) -> None:
        if len(lines) > 8:
            self.refresh()
            return
        top = self.scroll_offset.y
        width = self.scrollable_content_region.width
        visible = [Region(0, y - top, width, 1) for y in lines if 0 <= y - top < self.size.height]
        if visible:
            self.refresh(*visible)

    def _reveal(self) -> None:
        lines = [y for y, item in enumerate(self._items) if item.row is not None and item.row.sid == self._selected]
        if not lines:
            return
        top = lines[0] - 1 if lines[0] == 1 or self._items[lines[0] - 1].row is None else lines[0]
        self.scroll_to_region(Region(0, top, 1, lines[-1] - top + 1), animate=False, force=True)

    def on_resize(self) -> None:
        self._relayout()
        self._reveal()
        self.refresh()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        y = event.y + self.scroll_offset.y
        if 0 <= y < len(self._items) and (row := self._items[y].row) is not None:
            if event.chain == 2:
                self.post_message(self.Opened(row.sid))
            else:
                self.select(row.sid)

    def render_line(self, y: int) -> Strip:
        y += self.scroll_offset.y
        width = self.scrollable_content_region.width
        base = self.rich_style
        if not 0 <= y < len(self._items):
            return Strip.blank(width, base)
        item = self._items[y]
        if item.row is None:
            return self._title(item, width, base)
        return self._session(item.row, item.part, self._ages[y] if y < len(self._ages) else "", width, base)

    def _style(self, role: str) -> Style:
        return palette(self)[role]

    def _title(self, item: Item, width: int, base: Style) -> Strip:
        style = self._style(_TITLE_ROLES.get(item.group, "title"))
        line = Line(width)
        if self._as_table and item is self._items[0]:
            line.right(_HEADS, self._style("quiet"))
        return line.left(f" {TITLES[item.group]} ", style).left(str(item.count), self._style("quiet")).strip(base)

    def _session(self, row: SessionRow, part: int, age: str, width: int, base: Style) -> Strip:
        chosen = row.sid == self._selected
        if chosen:
            base = base + self._style("chosen" if self.has_focus else "selected")
        state = self._style(f"{cells.role(row.state)}")
        edge = self._style("meter") if self.has_focus else self._style("quiet")
        line = Line(width).left("▌" if chosen else " ", edge)
        if part == 0:
            line.left(cells.row_mark(row) + " ", state)
            if self._dense:
                return self._dense_line(row, age, line, state, base)
            line.right(f" {age:>4} ", self._style("quiet")).right(f" {row.state:>{_STATE_WIDTH}}", state)
            return line.left(cells.safe(row.name, line.room - 1), self._style("name")).strip(base)
        held = bool(row.next) and row.state != "waiting"
        if self._as_table:
            return self._more_of_table(row, line, base)
        if not held:
            self._money(row, line)  # why nothing goes on needs the room more than what it cost
        return (
            line.left("  ", base)
            .left(cells.safe(cells.doing(row), line.room - 1), self._style("text" if held else "quiet"))
            .strip(base)
        )

    @property
    def _as_table(self) -> bool:
        return self.scrollable_content_region.width >= _TABLE

    @property
    def _with_burn(self) -> bool:
        return self.scrollable_content_region.width >= _BURN

    def _table_line(self, row: SessionRow, age: str, line: Line, base: Style) -> Strip:
        """One line with columns: name, what it does now, plan or checks, lines, spend, how fast, for how long. Words
        of the selected session that have no room stand below, and only there.
        """
        quiet = self._style("quiet")
        counts = f"{row.plan_passed}/{row.plan_total}" if row.plan_total else self._checks(row)
        near = row.cap_nano is not None and row.spent_nano + row.reserved_nano >= row.cap_nano * 0.9
        line.right(f" {age:>5} ", quiet).right(_burn(row), self._style("meter"))
        spent = words.spend_cell(row.spent_nano, row.unknown_nano)
        line.right(f" {spent:>7}", self._style("attention") if near else quiet)
        line.right(f" {cells.lines(row):>8}", self._style("text")).right(f" {counts:>5}", quiet)
        line.left(cells.fit(cells.safe(row.name, self._for_names - 1), self._for_names), self._style("name"))
        if row.sid == self._selected and self._cut(row):
            return line.strip(base)
        doing = cells.safe(cells.doing(row), line.room)
        return line.left(doing, self._style("text" if row.next else "quiet")).strip(base)

    def _cut(self, row: SessionRow) -> bool:
        """What it does now has no room beside the columns of the table."""
        room = self.scrollable_content_region.width - _COLUMNS - self._for_names
        return cells.length(cells.safe(cells.doing(row), room + 1)) > room

    def _more_of_table(self, row: SessionRow, line: Line, base: Style) -> Strip:
        """What the columns of the selected session leave out: its words when they had no room, else its goal and how
        near it is to its cap.
        """
        cut = self._cut(row)
        if row.cap_nano is not None:
            used, rest = cells.bar(row.spent_nano + row.reserved_nano, row.cap_nano, 0 if cut else 6)
            near = row.spent_nano + row.reserved_nano >= row.cap_nano * 0.9
            line.right(f"{rest} ", self._style("quiet")).right(used, self._style("attention" if near else "meter"))
            spent = words.spend_cell(row.spent_nano, row.unknown_nano)
            line.right(f" {spent} of {words.cap_text(row.cap_nano)} ", self._style("quiet"))
            line.right(self._checks(row), self._style("quiet"))
        said = cells.doing(row) if cut else f"goal: {row.goal}"
        role = "text" if cut and row.next else "quiet"
        return line.left("  ", base).left(cells.safe(said, line.room - 1), self._style(role)).strip(base)

    def _dense_line(self, row: SessionRow, age: str, line: Line, state: Style, base: Style) -> Strip:
        if self._as_table:
            return self._table_line(row, age, line, base)
        whole = self.scrollable_content_region.width >= _WHOLE
        usual = row.state == _USUAL.get(row.group)
        line.right(f" {age:>4} ", self._style("quiet"))
        if self._with_burn:
            line.right(_burn(row), self._style("meter"))
        if self._spend_first(row):
            line.right(f" {words.spend_cell(row.spent_nano, row.unknown_nano):>7}", self._style("quiet"))
        if whole:
            counts = f"{row.plan_passed}/{row.plan_total}" if row.plan_total else self._checks(row)
            line.right(f" {counts:>5}", self._style("quiet"))
        names = min(self._for_names, line.room - _DOING)
        if names >= _SHORT:
            line.left(cells.fit(cells.safe(row.name, names - 1), names), self._style("name"))
            if row.sid == self._selected:  # what it does stands below it
                return line.left("" if usual else row.state, state).strip(base)
            if not usual:
                line.left(f"{row.state} ", state)
            return line.left(cells.safe(cells.doing(row), line.room), self._style("quiet")).strip(base)
        if not usual:
            line.right(f" {row.state:>{_STATE_WIDTH}}", state)
        return line.left(cells.safe(row.name, line.room - 1), self._style("name")).strip(base)

    def _spend_first(self, row: SessionRow) -> bool:
        """Of one line a session: what it spent stands there; in a narrow list what it does now takes that room."""
        return self.scrollable_content_region.width >= _WHOLE

    def _checks(self, row: SessionRow) -> str:
        if row.no_criterion:
            return cells.UNVERIFIED
        return f"✓{row.checks_passed}/{row.checks_total}" if row.checks_total else ""

    def _money(self, row: SessionRow, line: Line) -> None:
        """Right part of the second line: checks, spend and a meter against the cap; in a narrow list that only from
        half of the cap on, so that what goes on has the room.
        """
        width = self.scrollable_content_region.width
        wide = width >= 40
        whole = self._dense and width >= _WHOLE
        line.right(" ", Style.null())
        if self._with_burn and not whole:
            line.right(_burn(row), self._style("meter"))
        spent = row.spent_nano + row.reserved_nano
        if row.cap_nano is not None and (wide or 2 * spent >= row.cap_nano):
            used, rest = cells.bar(spent, row.cap_nano, 6 if wide else 4)
            near = row.cap_nano > 0 and spent >= row.cap_nano * 0.9
            line.right(rest, self._style("quiet")).right(used, self._style("attention" if near else "meter"))
            line.right(" ", Style.null())
        if not (self._dense and self._spend_first(row)):
            line.right(words.spend_cell(row.spent_nano, row.unknown_nano), self._style("quiet"))
        if row.files and (wide or row.group == REVIEW):
            line.right(f"{cells.lines(row)} ", self._style("text"))
        if row.plan_total:
            line.right(" ", Style.null())
            for text, role in reversed(cells.plan(row, 6 if wide else 3)):
                line.right(text, self._style(role))
        elif row.no_criterion:
            line.right(
                f"{cells.UNVERIFIED} no criterion " if wide else f"{cells.UNVERIFIED} ", self._style("attention")
            )
        elif not whole and (checks := self._checks(row)):
            line.right(checks + " ", self._style("good" if row.checks_passed == row.checks_total else "quiet"))
        line.right(" ", Style.null())
