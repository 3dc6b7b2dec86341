"""The card of one open request: scrolls when it is long, never hides, and knows whether all of it has been on
screen.
"""

from __future__ import annotations

from typing import ClassVar

from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from harness.events.views import ApprovalView
from widgets.card_text import CardLine, card_lines, shown_hash, wrap
from widgets.cells import Line

_ROLES = (
    "badge-low",
    "badge-medium",
    "badge-high",
    "badge-critical",
    "head",
    "label",
    "run",
    "text",
    "dim",
    "warn",
    "add",
    "remove",
    "hunk",
)


class ApprovalCard(ScrollView, can_focus=True):
    """Draws `card_lines` of an `ApprovalView`. Text never passes a markup parser."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"ac--{role}" for role in _ROLES),
        "ac--claim",
        "ac--claim-head",
        "ac--rule",
        "ac--mark",
    }
    DEFAULT_CSS = """
    ApprovalCard {
        background: $background;
        overflow-x: hidden;
        overflow-y: scroll;
        scrollbar-size-vertical: 1;
        &:focus { background-tint: $foreground 0%; }
        & > .ac--badge-low { background: $success; color: $background; text-style: bold; }
        & > .ac--badge-medium { background: $warning; color: $background; text-style: bold; }
        & > .ac--badge-high { background: $error; color: $background; text-style: bold; }
        & > .ac--badge-critical { background: $error; color: $background; text-style: bold; }
        & > .ac--head { color: $foreground; text-style: bold; }
        & > .ac--label { color: $primary; text-style: bold; }
        & > .ac--run { color: $foreground; text-style: bold; }
        & > .ac--text { color: $foreground; }
        & > .ac--dim { color: $text-muted; }
        & > .ac--warn { color: $warning; }
        & > .ac--add { color: $success; }
        & > .ac--remove { color: $error; }
        & > .ac--hunk { color: $accent; }
        & > .ac--rule { color: $text-muted; }
        & > .ac--claim-head { color: $text-muted; text-style: bold; }
        & > .ac--claim { color: $text-muted; text-style: italic; }
        & > .ac--mark { color: $text-muted; }
    }
    ApprovalCard:ansi {
        & > .ac--badge-low, & > .ac--badge-medium {
            background: ansi_default; color: ansi_default; text-style: bold reverse;
        }
        & > .ac--badge-high, & > .ac--badge-critical {
            background: ansi_default; color: ansi_red; text-style: bold reverse;
        }
        & > .ac--dim, & > .ac--rule, & > .ac--mark { color: ansi_default; text-style: dim; }
        & > .ac--claim { color: ansi_default; text-style: italic; }
        & > .ac--claim-head { color: ansi_default; text-style: bold; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        self._view: ApprovalView | None = None
        self._card: list[CardLine] = []
        self._rows: list[tuple[str, str, str]] = []
        self._unseen: set[int] = set()
        self._wrapped = 0
        self._hash = ""
        super().__init__(id=id)

    @property
    def view(self) -> ApprovalView | None:
        """The request on the card."""
        return self._view

    @property
    def fully_shown(self) -> bool:
        """True once every row, the last one included, was painted since the card or its size changed."""
        return self._view is not None and bool(self._rows) and not self._unseen

    @property
    def shown_hash(self) -> str:
        """SHA-256 of the text on the card; empty without one."""
        return self._hash

    def set_view(self, view: ApprovalView | None) -> None:
        """Show another request from its top; the same one again changes nothing."""
        if view == self._view:
            return
        self._view = view
        self._card = card_lines(view) if view is not None else []
        self._hash = shown_hash(view) if view is not None else ""
        self._wrap()
        self.scroll_to(0, 0, animate=False)
        self.refresh()

    def set_lines(self, lines: list[CardLine]) -> None:
        """Show these lines from their top, for reading only: they are no request, and never count as one that was
        shown.
        """
        self._view = None
        self._card = lines
        self._hash = ""
        self._wrap()
        self.scroll_to(0, 0, animate=False)
        self.refresh()

    def on_resize(self) -> None:
        if self.size.width != self._wrapped:
            self._wrap()
        else:
            self._unseen = set(range(len(self._rows)))
        self.refresh()

    def _wrap(self) -> None:
        self._wrapped = self.size.width
        self._rows = (
            [(mark, text, line.role) for line in self._card for mark, text in wrap(line, self._wrapped)]
            if self._wrapped
            else []
        )
        self._unseen = set(range(len(self._rows)))
        self.virtual_size = Size(self._wrapped, len(self._rows))

    def render_line(self, y: int) -> Strip:
        row = round(self.scroll_y) + y
        line = Line(self.size.width)
        if row >= len(self._rows) or self._wrapped != self.size.width:
            return line.strip(self.rich_style)
        mark, text, role = self._rows[row]
        self._unseen.discard(row)
        return line.left(mark, self._style("mark")).left(text, self._style(role)).strip(self.rich_style)

    def _style(self, role: str) -> Style:
        return self.get_component_rich_style(f"ac--{role}", partial=True)


__all__ = ["ApprovalCard", "CardLine", "card_lines", "shown_hash", "wrap"]
