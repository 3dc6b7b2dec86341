"""One line of tabs, drawn by one widget."""

from __future__ import annotations

from collections.abc import Sequence

from rich.cells import cell_len
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from widgets.base.cells import Line
from widgets.base.palette import palette


class TabLine(Widget):
    """Titles side by side, the current one marked; a click chooses."""

    DEFAULT_CSS = "TabLine { height: 1; }"

    class Chosen(Message):
        """A tab was clicked."""

        def __init__(self, tab: str) -> None:
            super().__init__()
            self.tab = tab

    def __init__(self, tabs: Sequence[tuple[str, str]], *, dom_id: str | None = None) -> None:
        super().__init__(id=dom_id)
        self._tabs = list(tabs)
        self.current = self._tabs[0][0]

    def choose(self, tab: str) -> None:
        """Mark another tab as current."""
        self.current = tab
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        x = 1
        for tab, title in self._tabs:
            width = cell_len(title) + 2
            if x <= event.x < x + width:
                self.post_message(self.Chosen(tab))
                return
            x += width + 1

    def render_line(self, y: int) -> Strip:
        tints = palette(self)
        rule = tints["border"]
        line = Line(self.size.width).left("─", rule)
        for tab, title in self._tabs:
            style = tints["heading"] + Style(reverse=True) if tab == self.current else tints["quiet"]
            line.left(f" {title} ", style).left("─", rule)
        return line.strip(self.rich_style, "─", rule)
