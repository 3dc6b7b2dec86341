"""The last line of every screen: the keys that do something right now, and what they do."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip

from widgets.cells import Line
from widgets.lines import PaintedLines
from widgets.palette import palette


def arrange(entries: Sequence[tuple[str, str, str]], width: int) -> list[tuple[str, str, str]]:
    """The (action, key, label) entries that fit, in order; one too many is left out whole, never cut.

    The last entry always stays.
    """
    if not entries:
        return []
    last = entries[-1]
    room = width - 1 - _size(last)
    kept: list[tuple[str, str, str]] = []
    for entry in entries[:-1]:
        if _size(entry) > room:
            break
        room -= _size(entry)
        kept.append(entry)
    return [*kept, last]


def _size(entry: tuple[str, str, str]) -> int:
    return cell_len(entry[1]) + 1 + cell_len(entry[2]) + 2


class HelpBar(PaintedLines):
    """Shows (action, key, label) entries; a click on one runs it."""

    DEFAULT_CSS = "HelpBar { height: 1; }"

    class Pressed(Message):
        """An entry was clicked."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self, *, dom_id: str | None = None) -> None:
        super().__init__(id=dom_id)
        self._entries: list[tuple[str, str, str]] = []

    @property
    def shown(self) -> list[tuple[str, str, str]]:
        """The entries that are on screen now."""
        return arrange(self._entries, self.size.width)

    def set_entries(self, entries: Sequence[tuple[str, str, str]]) -> None:
        """(action id, key as shown, label), most useful first; the last one (help) always stays visible."""
        if list(entries) != self._entries:
            self._entries = list(entries)
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        x = 1
        for entry in self.shown:
            if x <= event.x < x + _size(entry) - 1:
                self.post_message(self.Pressed(entry[0]))
                return
            x += _size(entry)

    def render_line(self, y: int) -> Strip:
        key = palette(self)["key"]
        label = palette(self)["quiet"]
        line = Line(self.size.width).left(" ", Style.null())
        for _action, keys, text in self.shown:
            line.left(keys, key).left(" ", label).left(text, label).left("  ", label)
        return line.strip(self.rich_style)
