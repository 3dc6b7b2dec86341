"""What lists of whole lines share in which one is selected: their keys move the selection, never the lines alone."""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from widgets.base.lines import ScrolledLines


class SelectingLines(ScrolledLines, inherit_bindings=False):
    """Without the keys that scroll and do not select, so that those of the screen arrive."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("pageup,ctrl+u", "page(-1)", "Page up", show=False),
        Binding("pagedown,ctrl+d", "page(1)", "Page down", show=False),
    ]

    def move(self, step: int) -> None:
        """Move the selection by so many lines."""
        raise NotImplementedError

    def action_page(self, pages: int) -> None:
        """Move the selection by so many screens."""
        self.move(pages * max(1, self.size.height - 2))
