"""One line of tabs, drawn by one widget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from widgets.cells import Line


class TabLine(Widget):
    """Titles side by side, the current one marked; a click chooses."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"tl--tab", "tl--current", "tl--rule"}

    DEFAULT_CSS = """
    TabLine {
        height: 1;
        & > .tl--tab { color: $text-muted; }
        & > .tl--current { color: $primary; text-style: bold reverse; }
        & > .tl--rule { color: $border-blurred; }
    }
    TabLine:ansi { & > .tl--tab { color: ansi_default; } }
    """

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
        rule = self.get_component_rich_style("tl--rule", partial=True)
        line = Line(self.size.width).left("─", rule)
        for tab, title in self._tabs:
            style = self.get_component_rich_style("tl--current" if tab == self.current else "tl--tab", partial=True)
            line.left(f" {title} ", style).left("─", rule)
        return line.strip(self.rich_style, "─", rule)
