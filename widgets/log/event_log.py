"""One session's log as one line-API widget: any size of log opens at once, follows its end, filters and searches in
small steps.
"""

from __future__ import annotations

import asyncio
import time
from typing import ClassVar

import msgspec
from rich.style import Style
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip

from harness.domain.text.display_safe import to_display
from harness.eventlog.framing import LogError
from harness.events import types as t
from harness.reports.describe import GROUPS
from widgets.base.cells import Line, clip
from widgets.base.follow_tail import FollowingLines
from widgets.log import log_line
from widgets.log.log_rows import LogSource, Needle, Rows

_CACHED = 600
_STEP_S = 0.006
_ASKED_S = 0.02
"""Between two looks whether records have come that a search waits for."""
_FILTERS: tuple[frozenset[str] | None, ...] = (None, *(frozenset((group,)) for group in GROUPS))


class EventLog(FollowingLines):
    """Time, kind and one line of words per record. The owner calls `sync` on its tick while the widget is visible."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "el--head",
        "el--time",
        "el--text",
        "el--info",
        "el--good",
        "el--warn",
        "el--bad",
        "el--dim",
        "el--cursor",
        "el--hit",
    }
    DEFAULT_CSS = """
    EventLog {
        overflow-y: scroll;
        &.-compact { scrollbar-size-vertical: 0; }
        & > .el--head { color: $text-muted; background: $panel; }
        & > .el--time { color: $text-muted; }
        & > .el--text { color: $foreground; }
        & > .el--info { color: $primary; }
        & > .el--good { color: $success; }
        & > .el--warn { color: $warning; }
        & > .el--bad { color: $error; text-style: bold; }
        & > .el--dim { color: $text-muted; }
        & > .el--cursor { background: $block-cursor-background; color: $block-cursor-foreground; }
        & > .el--hit { background: $warning; color: $background; text-style: bold; }
    }
    EventLog:ansi {
        & > .el--head { background: ansi_default; text-style: underline; }
        & > .el--time, & > .el--dim { color: ansi_default; text-style: dim; }
        & > .el--cursor { background: ansi_default; color: ansi_default; text-style: reverse; }
        & > .el--hit { background: ansi_default; color: ansi_default; text-style: reverse bold; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("enter", "open_record", "Open", show=False),
    ]

    class Opened(Message):
        """The user opened a record."""

        def __init__(self, seq: int) -> None:
            super().__init__()
            self.seq = seq

    class Searched(Message):
        """A search came to its end; ``seq`` is the hit, or -1 when there is none."""

        def __init__(self, text: str, seq: int) -> None:
            super().__init__()
            self.text = text
            self.seq = seq

    def __init__(self, *, compact: bool = False, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(compact=compact, id=id)
        self._rows: Rows | None = None
        self._empty = True
        self._holes = False
        self._problem = ""
        self._needle: Needle | None = None
        self._searching = False
        self._strips: dict[tuple[int, bool], Strip] = {}
        self._styles: dict[str, Style] = {}
        self.set_class(compact, "-compact")

    # -- what is shown -----------------------------------------------------------------------------

    def set_log(self, source: LogSource | None) -> None:
        """Show the log of this source, at its end; None shows nothing."""
        self._close()
        self._empty = source is None
        self._holes = False
        self._needle = None
        self._searching = False
        self.follow = True
        self._cursor = -1
        self._problem = ""
        if source is not None:
            try:
                self._rows = Rows(source)
            except (LogError, OSError) as exc:
                self._problem = str(exc)
        self._forget()
        self._resize(self._shown)
        self.refresh()

    def sync(self) -> bool:
        """Take in what was appended since the last call, and filter on for a few milliseconds; True when more is
        waiting.
        """
        rows = self._rows
        if rows is None:
            return False
        try:
            added = rows.extend()
            before, more = rows.step(_STEP_S)
        except (LogError, OSError) as exc:
            self._close()
            self._problem = str(exc)
            self._resize(self._shown)
            self.refresh()
            return False
        if rows.arrived() or self._holes:
            self._holes = False
            self.refresh()
        if added < 0:
            self._forget()
            self.refresh()
        old = self._count
        if len(rows) != old or before:
            self._grow(len(rows), before)
        elif added or more:
            self._refresh_head()
        return more

    def tick(self) -> None:
        """Once a second: a record says the same for ever."""

    def set_filter(self, groups: frozenset[str] | None) -> None:
        """Show only records of these groups (see `harness.reports.describe.GROUPS`); None shows all."""
        if self._rows is None or groups == self._rows.groups:
            return
        seq = self.cursor_seq
        self._rows.set_filter(groups)
        self._rows.step(_STEP_S)
        self._forget()
        self._cursor = -1
        self._resize(self._shown)
        if not self.follow and seq is not None and len(self._rows):
            self._put_cursor(self._rows.position_of(seq))
        self.refresh()

    def cycle_filter(self) -> frozenset[str] | None:
        """All, then each group by itself; returns what is shown now."""
        here = _FILTERS.index(self.groups) if self.groups in _FILTERS else 0
        self.set_filter(_FILTERS[(here + 1) % len(_FILTERS)])
        return self.groups

    @property
    def groups(self) -> frozenset[str] | None:
        """The groups shown; None = all."""
        return self._rows.groups if self._rows is not None else None

    @property
    def total(self) -> int:
        """Rows shown, after the filter."""
        return self._count

    @property
    def cursor_seq(self) -> int | None:
        """The record under the cursor; while following, the last one."""
        if self._rows is None or not self._count:
            return None
        return self._rows.seq_at(self._cursor if 0 <= self._cursor < self._count else self._count - 1)

    @property
    def status(self) -> str:
        """Where the log stands, in a few words."""
        if self._rows is None:
            return self._problem or "no log"
        words = [] if self.groups is None else ["only " + ", ".join(sorted(self.groups))]
        if self.groups is not None and self._rows.scanned < 1:
            words.append(f"{self._rows.scanned:.0%} looked at")
        if self._needle is not None:
            words.append(("looking for " if self._searching else "search ") + to_display(self._needle.text, limit=30))
        position = self._cursor + 1 if self._cursor >= 0 else self._count
        words.append("following" if self.follow else f"{position:,} of {self._count:,}")
        return " · ".join(words)

    def record(self, seq: int) -> t.Record | None:
        """A decoded record; None when it cannot be read."""
        try:
            record = t.decode(self._rows.line(seq)) if self._rows is not None else None
        except (msgspec.DecodeError, IndexError, OSError):
            return None
        return record if record is not None and record.seq == seq else None

    def go_to(self, seq: int) -> None:
        """Put the cursor on a record and stop following."""
        if self._rows is not None and self._count:
            self._stop_following()
            self._put_cursor(self._rows.position_of(seq))

    # -- search ------------------------------------------------------------------------------------

    def search(self, text: str) -> None:
        """Highlight ``text`` and go to its nearest hit at or before the cursor; empty ends the search.

        Posts `Searched`.
        """
        self._needle = Needle(text) if text else None
        self._strips.clear()
        self.refresh()
        if text:
            self._look(forward=False, beyond=False)

    def next_match(self, *, forward: bool = True) -> None:
        """Go to the next hit of the search, around the end of the log if need be. Posts `Searched`."""
        if self._needle is not None:
            self._look(forward=forward, beyond=True)

    def _look(self, *, forward: bool, beyond: bool) -> None:
        self._searching = True
        self._refresh_head()
        self.run_worker(self._walk(forward, beyond), group="search", exclusive=True, exit_on_error=False)

    async def _walk(self, forward: bool, beyond: bool) -> None:
        rows = self._rows
        needle = self._needle
        seq = self.cursor_seq
        hit: int | None = -1
        if rows is not None and needle is not None and seq is not None:
            until = time.perf_counter() + _STEP_S
            step = 1 if forward else -1
            for hit in rows.look(needle, seq + step if beyond else seq, forward=forward):
                if rows is not self._rows or needle is not self._needle:
                    return
                if hit is not None:
                    break
                if rows.waiting:
                    await asyncio.sleep(_ASKED_S)
                elif time.perf_counter() > until:
                    # A search through a million records must not keep a key press waiting.
                    await asyncio.sleep(0.001)
                    until = time.perf_counter() + _STEP_S
        self._searching = False
        if hit is not None and hit >= 0:
            self.go_to(hit)
        self._refresh_head()
        if needle is not None:
            self.post_message(self.Searched(needle.text, -1 if hit is None else hit))

    @property
    def _shown(self) -> int:
        return len(self._rows) if self._rows is not None else 0

    def action_open_record(self) -> None:
        if (seq := self.cursor_seq) is not None:
            self.post_message(self.Opened(seq))

    def on_resize(self) -> None:
        self._strips.clear()
        self._resize(self._shown)

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._forget()

    def _forget(self) -> None:
        self._strips.clear()
        self._styles.clear()

    def _close(self) -> None:
        if self._rows is not None:
            self._rows.close()
            self._rows = None

    def on_unmount(self) -> None:
        self._close()

    # -- drawing -----------------------------------------------------------------------------------

    def _style(self, name: str) -> Style:
        style = self._styles.get(name)
        if style is None:
            style = self.get_component_rich_style(f"el--{name}", partial=True)
            self._styles[name] = style
        return style

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        if y < self._head:
            return self._head_line(width)
        position = round(self.scroll_y) + y - self._head
        if self._rows is None or not 0 <= position < self._count:
            text = self._instead() if y == self._head else ""
            style = self._style("bad" if self._problem else "dim")
            return Line(width).left(to_display(text), style).strip(self.rich_style)
        seq = self._rows.seq_at(position)
        marked = position == self._cursor and (self.has_focus or not self.follow) and not (self.compact and self.follow)
        strip = self._strips.get((seq, marked))
        if strip is None and not self._rows.has(seq):
            self._holes = True
            return Line(width).left("…", self._style("dim")).strip(self.rich_style)
        if strip is None:
            if len(self._strips) > _CACHED:
                self._strips.clear()
            strip = self._row_line(seq, marked, width)
            self._strips[seq, marked] = strip
        return strip

    def _instead(self) -> str:
        """What stands where the first record would: what is wrong, or that there is none."""
        if self._problem or self._empty:
            return self._problem
        return "" if self._count else "nothing recorded yet"

    def _head_line(self, width: int) -> Strip:
        line = Line(width)
        line.right(clip(self.status, max(0, width - 24)) + " ", self._style("head"))
        line.left(log_line.heading(width), self._style("head"))
        return line.strip(self.rich_style, fill_style=self._style("head"))

    def _row_line(self, seq: int, marked: bool, width: int) -> Strip:
        assert self._rows is not None
        inside = self._needle is not None and self._needle.found(self._rows.line(seq))
        look = log_line.LineLook(width, self.compact, self._style, self.rich_style, marked)
        return log_line.draw(
            self.record(seq), seq, look, self._needle.text if self._needle is not None and inside else ""
        )


__all__ = ["EventLog"]
