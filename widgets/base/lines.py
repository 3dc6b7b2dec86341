"""What widgets share that paint themselves line by line."""

from __future__ import annotations

from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widget import Widget


class PaintedLines(Widget):
    """Works out its own style once for all lines of a paint: that walks up to the screen, and was an eighth of the
    processor time of a busy floor.
    """

    _of_this_paint: Style | None = None

    @property
    def rich_style(self) -> Style:
        known = self._of_this_paint
        return super().rich_style if known is None else known

    def render_lines(self, crop: Region) -> list[Strip]:
        self._of_this_paint = super().rich_style
        try:
            return super().render_lines(crop)
        finally:
            self._of_this_paint = None


_SCROLLED = """
    background: $background;
    overflow-x: hidden;
    scrollbar-size-vertical: 1;
    &:focus { background-tint: $foreground 0%; }
"""


class ScrolledLines(PaintedLines, ScrollView, can_focus=True):
    """More lines than the screen has, behind a narrow bar and cut at the right. It has no keys of its own."""

    DEFAULT_CSS = f"ScrolledLines {{{_SCROLLED}}}"


class ReadLines(ScrollView, can_focus=True):
    """The same to be read only, with the keys that scroll."""

    DEFAULT_CSS = f"ReadLines {{{_SCROLLED}}}"


LOG_KEYS: list[BindingType] = [
    Binding("up,k", "cursor(-1)", "Up", show=False),
    Binding("down,j", "cursor(1)", "Down", show=False),
    Binding("pageup,ctrl+u", "page(-1)", "Page up", show=False),
    Binding("pagedown,ctrl+d", "page(1)", "Page down", show=False),
    Binding("home,g", "first", "First", show=False),
    Binding("end,G", "last", "Last", show=False),
]
"""How one moves in a log, whatever is shown of it."""


def set_content_size(view: ScrollView, size: Size) -> None:
    """How large what a view scrolls is now, without arranging the screen anew; for views whose scroll bars neither come
    nor go.
    """
    if size != view.virtual_size:
        view.set_reactive(ScrollView.virtual_size, size)
        view._scroll_update(size)
