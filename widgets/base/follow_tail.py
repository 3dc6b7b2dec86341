"""Lines that follow their end: one of them is the cursor, and whoever scrolls up stops following until the end is
reached again.
"""

from __future__ import annotations

from typing import ClassVar

from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size

from widgets.base.lines import LOG_KEYS, ScrolledLines, set_content_size


class FollowingLines(ScrolledLines):
    """As many lines as `_resize` was told, below a title where it is not ``compact``."""

    BINDINGS: ClassVar[list[BindingType]] = [*LOG_KEYS]

    def __init__(self, *, compact: bool, id: str | None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self.compact = compact
        self.follow = True
        self._count = 0
        self._cursor = -1
        """Behind the last line, that is at the end, while it follows."""
        self._own_scroll = False

    def action_open_record(self) -> None:
        """Open the line under the cursor."""
        raise NotImplementedError

    @property
    def _head(self) -> int:
        return 0 if self.compact else 1

    @property
    def _page(self) -> int:
        return max(1, self.size.height - self._head)

    def action_cursor(self, step: int) -> None:
        start = self._cursor if self._cursor >= 0 else self._count - 1
        self._stop_following()
        self._put_cursor(start + step)

    def action_page(self, pages: int) -> None:
        self.action_cursor(pages * max(1, self._page - 1))

    def action_first(self) -> None:
        self._stop_following()
        self._put_cursor(0)

    def action_last(self) -> None:
        self._cursor = -1
        self._follow(True)
        self._to_end()
        self.refresh()

    def _put_cursor(self, position: int) -> None:
        old = self._cursor
        self._cursor = max(0, min(position, self._count - 1)) if self._count else -1
        top = round(self.scroll_y)
        if self._cursor < top:
            self._scroll(self._cursor)
        elif self._cursor >= top + self._page:
            self._scroll(self._cursor - self._page + 1)
        for row in (old, self._cursor):
            self._refresh_row(row)
        self._refresh_head()

    def _stop_following(self) -> None:
        if self._cursor < 0 and self._count:
            self._cursor = self._count - 1
        self._follow(False)

    def _follow(self, follow: bool) -> None:
        if follow != self.follow:
            self.follow = follow
            self._refresh_head()

    def _scroll(self, y: float) -> None:
        self._own_scroll = True
        try:
            self.scroll_target_y = y
            self.scroll_y = y
        finally:
            self._own_scroll = False

    def _to_end(self) -> None:
        self._scroll(self.max_scroll_y)

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Scrolling up by any means stops following; reaching the end again takes it up."""
        super().watch_scroll_y(old_value, new_value)
        if self._own_scroll or not self._count or round(old_value) == round(new_value):
            return
        at_end = new_value >= self.max_scroll_y
        self._follow(at_end)
        if at_end:
            self._cursor = -1

    # -- size --------------------------------------------------------------------------------------

    def _resize(self, count: int) -> None:
        """Tell the scrolling how many rows there are, without a layout of the whole screen (nothing else moves)."""
        self._count = count
        if self.is_mounted:
            self._own_scroll = True
            try:
                set_content_size(self, Size(self.size.width, count + self._head))
            finally:
                self._own_scroll = False
        else:
            self.set_reactive(ScrolledLines.virtual_size, Size(self.size.width, count + self._head))
        if self.follow:
            self._to_end()

    def _grow(self, count: int, before: int) -> None:
        """There are more rows, ``before`` of them above what was there."""
        old = self._count
        top = round(self.scroll_y)
        self._resize(count)
        if before and not self.follow:
            # Older matches appeared above: what the reader looks at stays where it is.
            self._scroll(top + before)
            self._cursor += before if self._cursor >= 0 else 0
        if before or self.follow or self._count < old:
            self.refresh()
            return
        first = max(old, top)
        last = min(self._count, top + self._page)
        if first < last:
            self.refresh(Region(0, first - top + self._head, self.size.width, last - first))
        self._refresh_head()

    def on_click(self, event: events.Click) -> None:
        row = round(self.scroll_y) + event.y - self._head
        if event.y >= self._head and 0 <= row < self._count:
            self._stop_following()
            self._put_cursor(row)
            if event.chain == 2:
                self.action_open_record()

    # -- painting again ----------------------------------------------------------------------------

    def _refresh_row(self, position: int) -> None:
        y = position - round(self.scroll_y) + self._head
        if self._head <= y < self.size.height:
            self.refresh(Region(0, y, self.size.width, 1))

    def _refresh_head(self) -> None:
        if not self.compact:
            self.refresh(Region(0, 0, self.size.width, 1))
