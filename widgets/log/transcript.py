"""One session's transcript as one line-API widget: opens at the end of a log of any size, follows it, opens any row.

Rows have as many lines as they need, so places are rows and lines of them, never line numbers of the whole.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, NamedTuple

from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from harness.domain.text.display_safe import to_display
from harness.eventlog.framing import LogError
from harness.events import types as t
from harness.reports.transcript_row import Row, Stage
from widgets.base.cells import Line
from widgets.base.lines import LOG_KEYS, PaintedLines
from widgets.base.palette import palette
from widgets.log.log_rows import LogSource
from widgets.log.transcript_lines import TextLine, lines
from widgets.log.transcript_pages import Pages, Place
from widgets.log.transcript_spool import newest_output

_WHEEL = 3
_CACHED = 400


class _Shown(NamedTuple):
    """A line on the screen: whose it is, and which of that row's lines."""

    row: Row
    number: int
    line: TextLine


class Transcript(PaintedLines, can_focus=True):
    """What a session said and did, readable. The owner calls `sync` on its tick and `tick` once a second."""

    DEFAULT_CSS = """
    Transcript {
        background: $background;
        &:focus { background-tint: $foreground 0%; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        *LOG_KEYS,
        Binding("enter", "open_row", "Open", show=False),
    ]

    class Opened(Message):
        """The user opened a row: what it is called, the records behind it, its session's folder if it is ours."""

        def __init__(self, row: Row, records: list[t.Record], home: Path | None) -> None:
            super().__init__()
            self.row = row
            self.records = records
            self.home = home

    def __init__(self, *, compact: bool = False, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self.compact = compact
        """In a pane of several: no cursor, no time of day, no bar."""
        self._pages: Pages | None = None
        self._source: LogSource | None = None
        self._going: int | None = None
        self._problem = ""
        self._top: tuple[int, int] | None = None
        self._cursor = -1
        self._view: list[_Shown] = []
        self._made: dict[int, tuple[Row, list[TextLine]]] = {}
        self._output: Mapping[str, tuple[str, ...]] = {}

    # -- what is shown -----------------------------------------------------------------------------

    def set_log(self, source: LogSource | None) -> None:
        """Show the log of this source, at its end; None shows nothing."""
        self._close()
        self._source = source
        self._going = None
        self._problem = ""
        self._top = None
        self._cursor = -1
        self._output = {}
        if source is not None:
            try:
                self._pages = Pages(source)
            except (LogError, OSError) as exc:
                self._problem = str(exc)
        self._rebuild()
        self.refresh()

    def sync(self) -> bool:
        """Take in what was appended since the last call. False: nothing more waits."""
        if self._pages is not None:
            try:
                added = self._pages.extend()
            except (LogError, OSError) as exc:
                self._fail(exc)
                return False
            if added < 0:
                self._top = None
                self._cursor = -1
                self._made.clear()
            came = self._pages.arrived()
            if came and self._going is not None:
                self._go_on()
            elif added or came or self._pages.waiting:
                self._rebuild()
        return False

    def tick(self) -> None:
        """Once a second: clocks of what runs go on, and its newest output is read beside everything else."""
        running = [shown.row for shown in self._view if shown.row.stage is Stage.RUNNING and shown.number == 0]
        if running:
            self._rebuild()
        names = [row.spool for row in running if row.spool]
        home = self._pages.home if self._pages is not None else None
        if names and home is not None:
            self.run_worker(self._read_output(home / "spool", names), group="output", exclusive=True)

    async def _read_output(self, spool: Path, names: list[str]) -> None:
        source = self._source
        found = await asyncio.to_thread(lambda: {name: newest_output(spool, name) for name in names})
        if source is self._source and found != self._output:
            self._output = found
            self._rebuild()

    @property
    def follow(self) -> bool:
        """True while the newest row is kept in sight."""
        return self._top is None

    @property
    def cursor_row(self) -> Row | None:
        """The row under the cursor; while following, the last one."""
        place = self._cursor_place()
        return self._pages.row(place) if self._pages is not None and place is not None else None

    # -- moving ------------------------------------------------------------------------------------

    def action_cursor(self, step: int) -> None:
        """Move the cursor by a row; through a row that is longer than the screen, a line."""
        pages = self._pages
        place = self._cursor_place()
        if pages is None or place is None:
            return
        seq = pages.row(place).seq
        mine = [shown.number for shown in self._view if shown.row.seq == seq]
        hidden = bool(mine) and (mine[0] > 0 if step < 0 else mine[-1] < len(self._lines(pages.row(place))) - 1)
        if hidden and len(mine) >= self.size.height - 1:
            self._scroll(step)
            return
        other = pages.before(place) if step < 0 else pages.after(place)
        if other is not None:
            self._reveal(other)
        elif step > 0:
            self.action_last()

    def action_page(self, pages: int) -> None:
        """Move on by so many screens."""
        self._scroll(pages * max(1, self.size.height - 1))
        if self._top is not None and self._view and not self.compact:
            self._cursor = self._view[0 if pages < 0 else -1].row.seq
            self._rebuild()

    def action_first(self) -> None:
        self._going = 0
        self._go_on()

    def _go_on(self) -> None:
        """Go where the user wanted to, once that is here."""
        place = self._pages.at(self._going) if self._pages is not None and self._going is not None else None
        if place is not None:
            self._going = None
            self._reveal(place)

    def action_last(self) -> None:
        self._going = None
        self._top = None
        self._cursor = -1
        self._rebuild()

    def action_open_row(self) -> None:
        row = self.cursor_row
        if self._pages is not None and row is not None:
            self.post_message(self.Opened(row, self._pages.behind(row), self._pages.home))

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self._scroll(-_WHEEL)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self._scroll(_WHEEL)

    def on_click(self, event: events.Click) -> None:
        if not self.compact and 0 <= event.y < len(self._view):
            self._stay()
            self._cursor = self._view[event.y].row.seq
            self._rebuild()
            if event.chain == 2:
                self.action_open_row()

    def _cursor_place(self) -> Place | None:
        if self._pages is None:
            return None
        return self._pages.last() if self._cursor < 0 else self._pages.at(self._cursor)

    def _stay(self) -> None:
        """Stop following: what is on top stays there."""
        if self._top is None and self._view:
            self._top = (self._view[0].row.seq, self._view[0].number)

    def _reveal(self, place: Place) -> None:
        """Put the cursor on a row and bring it into sight, its beginning before its end."""
        assert self._pages is not None
        row = self._pages.row(place)
        self._stay()
        self._cursor = row.seq
        mine = [shown.number for shown in self._view if shown.row.seq == row.seq]
        if self._view and row.seq <= self._view[0].row.seq and (not mine or mine[0] > 0):
            self._top = (row.seq, 0)
        elif not mine or mine[-1] < len(self._lines(row)) - 1:
            self._top = self._up_from(
                place, len(self._lines(row)) - 1, min(self.size.height, len(self._lines(row))) - 1
            )
            self._top = self._up_from(place, len(self._lines(row)) - 1, self.size.height - 1)
            if len(self._lines(row)) > self.size.height:
                self._top = (row.seq, 0)
        self._rebuild()

    def _scroll(self, by: int) -> None:
        """Move what is shown by so many lines; at the end it follows again."""
        pages = self._pages
        if pages is None or not self._view:
            return
        self._stay()
        assert self._top is not None
        seq, number = self._top
        place = pages.at(seq)
        if place is None:
            return
        if by < 0:
            self._top = self._up_from(place, number, -by)
        else:
            self._top = self._down_from(place, number, by)
        self._rebuild()

    def _up_from(self, place: Place, number: int, by: int) -> tuple[int, int]:
        assert self._pages is not None
        while by > number:
            above = self._pages.before(place)
            if above is None:
                return (self._pages.row(place).seq, 0)
            by -= number + 1
            place = above
            number = len(self._lines(self._pages.row(place))) - 1
        return (self._pages.row(place).seq, number - by)

    def _down_from(self, place: Place, number: int, by: int) -> tuple[int, int]:
        assert self._pages is not None
        while number + by >= (count := len(self._lines(self._pages.row(place)))):
            below = self._pages.after(place)
            if below is None:
                return (self._pages.row(place).seq, count - 1)
            by -= count - number
            place = below
            number = 0
        return (self._pages.row(place).seq, number + by)

    # -- lines -------------------------------------------------------------------------------------

    @property
    def _width(self) -> int:
        return max(4, self.size.width - (1 if self.compact else 2))

    def _lines(self, row: Row) -> list[TextLine]:
        known = self._made.get(row.seq)
        running = row.stage is Stage.RUNNING
        if known is not None and known[0] is row and not running:
            return known[1]
        if len(self._made) > _CACHED:
            self._made.clear()
        output = self._output.get(row.spool, ())
        made = lines(row, self._width, time.time(), output, roomy=not self.compact and self.size.width >= 80)
        self._made[row.seq] = (row, made)
        return made

    def _rebuild(self) -> None:
        """Find the lines that are on the screen, and repaint those that changed."""
        before = self._view
        try:
            self._view = self._find() if self._pages is not None and self.size.height else []
        except (LogError, OSError) as exc:
            self._fail(exc)
            return
        self.refresh_changed(before)

    def refresh_changed(self, before: list[_Shown]) -> None:
        """Repaint what is not as it was; everything while a cursor or a bar may have moved."""
        if not self.compact or len(before) != len(self._view):
            self.refresh()
            return
        old = [(shown.row.seq, shown.line) for shown in before]
        changed = [y for y, shown in enumerate(self._view) if old[y] != (shown.row.seq, shown.line)]
        if len(changed) > 8:
            self.refresh()
        elif changed:
            self.refresh(*(Region(0, y, self.size.width, 1) for y in changed))

    def _find(self) -> list[_Shown]:
        assert self._pages is not None
        self._pages.waiting = False
        if self._top is not None:
            place = self._pages.at(self._top[0])
            found = self._downwards(place, self._top[1]) if place is not None else []
            if len(found) >= self.size.height:
                return found
            if self._pages.waiting:
                return found or self._view
            # The end is in sight, so what comes is shown as it comes.
            self._top = None
        return self._upwards()

    def _downwards(self, place: Place | None, number: int) -> list[_Shown]:
        assert self._pages is not None
        found: list[_Shown] = []
        while place is not None and len(found) < self.size.height:
            row = self._pages.row(place)
            made = self._lines(row)
            found += [_Shown(row, i, made[i]) for i in range(min(number, len(made)), len(made))]
            number = 0
            place = self._pages.after(place)
        return found[: self.size.height]

    def _upwards(self) -> list[_Shown]:
        """The lines at the end of the log."""
        assert self._pages is not None
        found: list[_Shown] = []
        place = self._pages.last()
        while place is not None and len(found) < self.size.height:
            row = self._pages.row(place)
            made = self._lines(row)
            found = [*(_Shown(row, i, line) for i, line in enumerate(made)), *found]
            place = self._pages.before(place)
        return found[-self.size.height :]

    def _fail(self, exc: Exception) -> None:
        self._close()
        self._problem = str(exc)
        self._view = []
        self.refresh()

    def _close(self) -> None:
        self._made.clear()
        if self._pages is not None:
            self._pages.close()
            self._pages = None

    def on_unmount(self) -> None:
        self._close()

    def on_resize(self) -> None:
        self._made.clear()
        self._rebuild()

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self.refresh()

    # -- drawing -----------------------------------------------------------------------------------

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        base = self.rich_style
        styles = palette(self)
        line = Line(width)
        if not 0 <= y < len(self._view):
            if y == 0 and not self._view:
                line.left(
                    " " * (not self.compact) + to_display(self._instead()), styles["bad" if self._problem else "quiet"]
                )
            return line.strip(base)
        shown = self._view[y]
        marked = not self.compact and self._is_marked(shown.row)
        current = "chosen" if self.has_focus else "selected"
        over = styles[current] if marked else Style.null()
        if not self.compact:
            line.right(*self._bar(y))
        line.left("▌" if marked else " ", styles["meter"] + over)
        for text, role in shown.line.right[::-1]:
            line.right(text, styles[role] + over)
        for text, role in shown.line.left:
            line.left(text, styles[role] + over)
        return line.strip(base, fill_style=over if marked else None)

    def _is_marked(self, row: Row) -> bool:
        if self._cursor < 0:
            return self.has_focus and row.seq == self._view[-1].row.seq
        return row.seq == self._cursor

    def _bar(self, y: int) -> tuple[str, Style]:
        """Where the screen stands in the whole log, by records."""
        styles = palette(self)
        assert self._pages is not None
        height = self.size.height
        if len(self._view) < height:
            return " ", styles["border"]
        whole = max(1, self._pages.records)
        first = self._view[0].row.seq * height // whole
        last = height - 1 if self.follow else self._view[-1].row.seq * height // whole
        return ("▐", styles["quiet"]) if first <= y <= max(first, last) else (" ", styles["border"])

    def _instead(self) -> str:
        if self._problem or self._source is None:
            return self._problem
        return "nothing said or done yet"


__all__ = ["Transcript"]
