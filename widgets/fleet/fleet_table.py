"""All sessions as one table, drawn line by line: only what can be seen is rendered, however many there are."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence, Set

from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from harness.domain.state_span import Stretch
from harness.domain.text import formatting
from harness.views.session_views import NEEDS_YOU, SessionRow
from widgets.base import cells
from widgets.base.cells import Line
from widgets.base.lines import ScrolledLines
from widgets.base.palette import palette
from widgets.fleet import fleet_columns, timeline
from widgets.fleet.fleet_columns import Cell, Column
from widgets.fleet.fleet_order import TableEntry, View, entries, neighbour

_STEPS = 360
"""So often does a timeline move on while as much time passes as it shows."""
_HINT = 2
"""The line that says why the table is empty."""


class FleetTable(ScrolledLines):
    """The selection and the marks are pinned to sessions: no order, filter or newcomer moves them to others.

    The first line is the columns' titles and does not scroll.
    """

    class Changed(Message):
        """Another session is selected or marked, or what is shown is another part of the fleet."""

    class Opened(Message):
        """A session was opened by a double click."""

        def __init__(self, sid: str) -> None:
            super().__init__()
            self.sid = sid

    class Sorted(Message):
        """The title of a column was clicked."""

        def __init__(self, column: str) -> None:
            super().__init__()
            self.column = column

    def __init__(self, *, dom_id: str | None = None) -> None:
        super().__init__(id=dom_id)
        self._rows: dict[str, SessionRow] = {}
        self._view = View()
        self._entries: list[TableEntry] = []
        self._places: dict[str, int] = {}
        self._selected = ""
        self._marked: set[str] = set()
        self._needed: dict[str, int] = {}
        self._now = time.time()
        self._courses: dict[str, Sequence[Stretch]] = {}
        self._clocks: dict[int, tuple[str, str]] = {}

    # -- what is shown -----------------------------------------------------------------------------

    @property
    def view(self) -> View:
        """What of the fleet is shown, and how."""
        return self._view

    @property
    def selected(self) -> str:
        """Id of the selected session; empty when none is shown."""
        return self._selected

    @property
    def shown(self) -> list[str]:
        """Ids of the sessions in the table, in its order."""
        return list(self._places)

    @property
    def marked(self) -> Set[str]:
        """Ids of the marked sessions, those that the filter hides too."""
        return frozenset(self._marked)

    def restore(self, view: View, marked: Set[str], selected: str) -> None:
        """Show what was shown before; rows follow, and put right what is gone by now."""
        self._view = view
        self._marked = set(marked)
        self._selected = selected

    def set_rows(self, rows: Iterable[SessionRow]) -> None:
        """Take the newest rows; marks of sessions that are gone go with them."""
        self._rows = {row.sid: row for row in rows}
        self._marked &= self._rows.keys()
        self._arrange()

    def set_view(self, view: View) -> None:
        """Show another part of the fleet, or in another order."""
        self._view = view
        self._arrange()
        self._reveal()
        self.refresh()

    @property
    def in_sight(self) -> list[SessionRow]:
        """The sessions whose lines can be seen."""
        top = self.scroll_offset.y
        seen = self._entries[top : top + max(0, self.size.height - 1)]
        return [entry.row for entry in seen if entry.row is not None]

    def set_course(self, sid: str, stretches: Sequence[Stretch]) -> None:
        """What a session did when, for the timeline."""
        if self._courses.get(sid) != stretches:
            self._courses[sid] = stretches
            if self._view.span and sid in self._places:
                self._refresh([self._places[sid]])

    def _arrange(self) -> None:
        before = self._entries
        known = list(self._places)
        self._now = time.time()
        self._entries = entries(self._rows.values(), self._view, self._now)
        self._places = {entry.row.sid: at for at, entry in enumerate(self._entries) if entry.row is not None}
        if self._selected not in self._places:
            self._selected = neighbour(known, self._selected, self._places) or next(iter(self._places), "")
        size = Size(self.scrollable_content_region.width, len(self._entries) + 1)
        needed = fleet_columns.longest(entry.row for entry in self._entries if entry.row is not None)
        if self.virtual_size != size or self._needed != needed or not self._entries:
            self.virtual_size = size
            self._needed = needed
            self.refresh()
        else:
            self._refresh(
                [at for at, pair in enumerate(zip(before, self._entries, strict=False)) if pair[0] != pair[1]]
            )
        self.post_message(self.Changed())

    def tick(self, now: float) -> None:
        """Repaint the lines whose clock or age changed."""
        self._now = now
        if self._view.span and int(now) % max(1, self._view.span // _STEPS) == 0:
            self.refresh()
        top = self.scroll_offset.y
        self._clocks = {at: shown for at, shown in self._clocks.items() if 0 <= at - top < self.size.height}
        self._refresh([at for at, shown in self._clocks.items() if shown != self._clock(at)])

    def _clock(self, at: int) -> tuple[str, str]:
        row = self._entries[at].row if at < len(self._entries) else None
        if row is None:
            return "", ""
        return fleet_columns.lasted(row, self._now), formatting.age(row.created, self._now)

    def _refresh(self, lines: list[int]) -> None:
        top = self.scroll_offset.y
        seen = [at - top + 1 for at in lines if 0 <= at - top < self.size.height - 1]
        if len(seen) > 8:
            self.refresh()
        elif seen:
            self.refresh(*(Region(0, y, self.scrollable_content_region.width, 1) for y in seen))

    # -- commands ----------------------------------------------------------------------------------

    def move(self, step: int) -> None:
        """Move the selection by so many sessions, staying inside the table."""
        sids = self.shown
        if sids:
            at = sids.index(self._selected) + step
            self.select(sids[max(0, min(len(sids) - 1, at))])

    def page(self, pages: int) -> None:
        """Move the selection by so many screens."""
        self.move(pages * max(1, self.size.height - 2))

    def select(self, sid: str) -> None:
        """Put the selection on a session of the table."""
        if sid in self._places:
            self._selected = sid
            self._reveal()
            self.refresh()
            self.post_message(self.Changed())

    def mark(self) -> None:
        """Mark the selected session, or take its mark away, and go on to the next."""
        if self._selected:
            self._marked ^= {self._selected}
            self.move(1)
            self.refresh()

    def mark_all(self) -> None:
        """Mark every session in the table; when all of them are, take their marks away."""
        shown = set(self._places)
        self._marked = self._marked - shown if shown <= self._marked else self._marked | shown
        self.refresh()
        self.post_message(self.Changed())

    def _reveal(self) -> None:
        at = self._places.get(self._selected)
        if at is None:
            return
        titled = at > 0 and self._entries[at - 1].row is None
        at_top = at - 1 if titled else at  # its title comes into sight with it
        room = max(1, self.size.height - 1)
        top = self.scroll_offset.y
        if at_top < top:
            self.scroll_to(y=at_top, animate=False, force=True)
        elif at >= top + room:
            self.scroll_to(y=at - room + 1, animate=False, force=True)

    def on_resize(self) -> None:
        self._arrange()
        self._reveal()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        if event.y == 0:
            width = self.scrollable_content_region.width
            if column := fleet_columns.column_at(width, event.x, timeline=bool(self._view.span), needed=self._needed):
                self.post_message(self.Sorted(column))
            return
        at = event.y - 1 + self.scroll_offset.y
        row = self._entries[at].row if 0 <= at < len(self._entries) else None
        if row is not None and event.chain == 2:
            self.post_message(self.Opened(row.sid))
        elif row is not None:
            self.select(row.sid)

    # -- drawing -----------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        base = self.rich_style
        style = palette(self)
        line = Line(width)
        if y == 0:
            return self._head(line, base)
        at = y - 1 + self.scroll_offset.y
        if at >= len(self._entries):
            said = "No session fits the filter" if self._rows else "No sessions"
            empty = not self._entries and y == _HINT
            return line.left(f"   {said}" if empty else "", style["quiet"]).strip(base)
        entry = self._entries[at]
        if entry.row is None:
            role = "call" if entry.title == NEEDS_YOU else "title"
            title = cells.safe(entry.title, width - 8) or "no repository"
            shown = title if self._view.group == "repo" else title.upper()
            return line.left(f" {shown} ", style[role]).left(str(entry.count), style["quiet"]).strip(base)
        return self._session(at, entry.row, line, base)

    def _head(self, line: Line, base: Style) -> Strip:
        style = palette(self)
        for column, cell in self._columns:
            texts = fleet_columns.head(column, self._view, cell)
            if column is fleet_columns.TIMELINE:
                texts = ((timeline.scale(self._now, self._view.span, cell), "title"),)
            for text, role in texts:
                line.left(text, style[role])
        return line.strip(base)

    @property
    def _columns(self) -> list[tuple[Column, int]]:
        width = self.scrollable_content_region.width
        return fleet_columns.placed(width, timeline=bool(self._view.span), needed=self._needed)

    def _session(self, at: int, row: SessionRow, line: Line, base: Style) -> Strip:
        style = palette(self)
        chosen = row.sid == self._selected
        if chosen:
            base = base + style["chosen" if self.has_focus else "selected"]
        self._clocks[at] = self._clock(at)
        line.left("▌" if chosen else " ", style["meter" if self.has_focus else "quiet"])
        line.left("*" if row.sid in self._marked else " ", style["key"])
        for column, cell in self._columns:
            room = cell - 2 if column.id == "state" else cell
            if column is fleet_columns.TIMELINE:
                texts: Cell = tuple(timeline.runs(self._courses.get(row.sid, ()), self._now, self._view.span, room))
            else:
                texts = fleet_columns.text_of(row, column, room, self._now)
            for text, role in texts:
                line.left(text, style[role])
        return line.strip(base)
