"""A list of facts: label and wrapped text, drawn by one scrolling widget."""

from __future__ import annotations

from collections.abc import Sequence

from textual.geometry import Size
from textual.strip import Strip

from harness.domain.text.display_safe import to_display_lines
from widgets.base.cells import Line, wrap
from widgets.base.lines import ReadLines
from widgets.base.palette import palette

_LABEL = 14
_MOST_LINES = 4000


class FactList(ReadLines):
    """(label, text) pairs; texts are untrusted and displayed safely.

    An empty label continues, an empty pair is a gap.
    """

    def __init__(self, *, dom_id: str | None = None) -> None:
        super().__init__(id=dom_id)
        self._facts: tuple[tuple[str, str], ...] = ()
        self._lines: list[tuple[str, str]] = []

    def set_facts(self, facts: Sequence[tuple[str, str]]) -> None:
        """Show these facts."""
        if tuple(facts) != self._facts:
            self._facts = tuple(facts)
            self._wrap()

    def on_resize(self) -> None:
        self._wrap()

    def _wrap(self) -> None:
        width = max(10, self.scrollable_content_region.width - _LABEL - 3)
        self._lines = []
        for label, text in self._facts:
            parts = [part for line in to_display_lines(text, limit=4000) for part in wrap(line, width)]
            if len(parts) > _MOST_LINES:
                parts[_MOST_LINES:] = [f"⟨+{len(parts) - _MOST_LINES} lines⟩"]
            for number, part in enumerate(parts):
                self._lines.append((label if number == 0 else "", part))
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._lines))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        y += self.scroll_offset.y
        line = Line(self.scrollable_content_region.width)
        if y < len(self._lines):
            label, text = self._lines[y]
            line.left(f" {label:>{_LABEL}}  ", palette(self)["quiet"])
            line.left(text, palette(self)["text"])
        return line.strip(self.rich_style)
