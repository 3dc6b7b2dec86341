"""Lines of a report, one of them selected: each with a mark, a time and words that are cut at the edge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from widgets.base import cells
from widgets.base.cells import Line
from widgets.base.palette import palette
from widgets.base.selectable_lines import SelectingLines

_MARK = 9
_TIME = 12


@dataclass(frozen=True, slots=True)
class Item:
    """One line: raw text, drawn in the colours of ``role`` (its mark's is ``tint``)."""

    text: str
    role: str = "text"
    mark: str = ""
    time: str = ""
    tint: str = "quiet"
    indent: int = 0


class EntryList(SelectingLines):
    """The selection is a place in the list; it stays there when the list is read again."""

    class Opened(Message):
        """A line was clicked that was selected already."""

    class Moved(Message):
        """Another line was clicked."""

    def __init__(self) -> None:
        super().__init__()
        self._items: Sequence[Item] = ()
        self.at = 0

    def set_items(self, items: Sequence[Item]) -> None:
        """Show these lines."""
        self._items = items
        self.at = max(0, min(self.at, len(items) - 1))
        self.virtual_size = Size(self.scrollable_content_region.width, len(items))
        self.refresh()

    def move(self, step: int) -> None:
        """Move the selection by so many lines."""
        if self._items:
            self.at = max(0, min(len(self._items) - 1, self.at + step))
            self.scroll_to_region(Region(0, self.at, 1, 1), animate=False, force=True)
            self.refresh()

    def on_resize(self) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._items))

    def on_click(self, event: events.Click) -> None:
        inside = event.get_content_offset(self)
        at = inside.y + self.scroll_offset.y if inside is not None else -1
        if 0 <= at < len(self._items):
            again = at == self.at
            self.move(at - self.at)
            self.post_message(self.Opened() if again else self.Moved())

    def render_line(self, y: int) -> Strip:
        at = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        base = self.rich_style
        style = palette(self)
        if at >= len(self._items):
            return Strip.blank(width, base)
        item = self._items[at]
        if at == self.at:
            base = base + style["chosen" if self.has_focus else "selected"]
        line = Line(width).left("▌" if at == self.at else " ", style["meter"]).left(" " * item.indent, base)
        if item.mark:
            line.left(cells.fit(cells.safe(item.mark, _MARK), _MARK + 1), style[item.tint])
        if item.time and width >= 70:
            line.left(cells.fit(cells.safe(item.time, _TIME), _TIME), style["quiet"])
        return line.left(cells.safe(item.text, max(0, line.room)), style[item.role]).strip(base)
