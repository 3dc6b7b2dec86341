"""What widgets share that paint themselves line by line."""

from __future__ import annotations

from rich.style import Style
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


def set_content_size(view: ScrollView, size: Size) -> None:
    """How large what a view scrolls is now, without arranging the screen anew; for views whose scroll bars neither come
    nor go.
    """
    if size != view.virtual_size:
        view.set_reactive(ScrollView.virtual_size, size)
        view._scroll_update(size)
