"""The card of one open request: scrolls when it is long, never hides, and knows whether all of it has been on
screen.
"""

from __future__ import annotations

from hashlib import sha256
from typing import ClassVar

from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.strip import Strip

from harness.views.session_views import ApprovalView
from widgets.base.cells import Line
from widgets.base.lines import ScrolledLines, set_content_size
from widgets.card.card_text import Card, CardLine, card, card_lines, shown_hash, wrap

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
    "fold",
)


class ApprovalCard(ScrolledLines, inherit_bindings=False):
    """Draws `card` of an `ApprovalView`. Text never passes a markup parser.

    A page is turned by the screen alone, one a frame, so that no row is passed unpainted.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up", "scroll_up", show=False),
        Binding("down", "scroll_down", show=False),
        Binding("home", "scroll_home", show=False),
        Binding("end", "scroll_end", show=False),
    ]
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        *(f"ac--{role}" for role in _ROLES),
        "ac--claim",
        "ac--claim-head",
        "ac--rule",
        "ac--mark",
    }
    DEFAULT_CSS = """
    ApprovalCard {
        overflow-y: scroll;
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
        & > .ac--rule { color: $warning; text-style: bold; }
        & > .ac--claim-head { color: $text-muted; text-style: italic; }
        & > .ac--claim { color: $text-muted; text-style: italic; }
        & > .ac--mark { color: $text-muted; }
        & > .ac--fold { color: $primary; }
    }
    ApprovalCard:ansi {
        & > .ac--badge-low, & > .ac--badge-medium {
            background: ansi_default; color: ansi_default; text-style: bold reverse;
        }
        & > .ac--badge-high, & > .ac--badge-critical {
            background: ansi_default; color: ansi_red; text-style: bold reverse;
        }
        & > .ac--dim, & > .ac--mark { color: ansi_default; text-style: dim; }
        & > .ac--claim { color: ansi_default; text-style: italic; }
        & > .ac--claim-head { color: ansi_default; text-style: italic; }
    }
    """

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        self._view: ApprovalView | None = None
        self._decides = False
        self._card: Card | None = None
        self._lines: list[CardLine] = []
        self._needed = 0
        self._unfolded = False
        self._rows: list[tuple[str, str, str]] = []
        self._needed_rows = 0
        self._unseen: set[int] = set()
        self._wrapped = 0
        self._hash = ""
        super().__init__(id=id)

    @property
    def view(self) -> ApprovalView | None:
        """The request on the card."""
        return self._view

    def text(self) -> str:
        """The card's lines as they are shown, unbroken."""
        return "\n".join(line.text for line in self._lines)

    @property
    def fully_shown(self) -> bool:
        """True once every row that has to be seen was painted since the card or its size changed."""
        return self._decides and bool(self._rows) and not self._unseen

    @property
    def begun(self) -> bool:
        """True once any row of the card was painted: before that there is no page to turn from."""
        return bool(self._rows) and not (self._needed_rows and len(self._unseen) == self._needed_rows)

    @property
    def shown_hash(self) -> str:
        """SHA-256 of the text on the card; empty without one."""
        return self._hash

    def set_view(self, view: ApprovalView | None) -> None:
        """Show another request from its top; the same one again changes nothing."""
        if view == self._view:
            return
        self._view = view
        self._decides = view is not None
        self._card = card(view) if view is not None else None
        self._hash = self._card.hash if self._card is not None else ""
        self._unfolded = False
        self._draw()

    @property
    def foldable(self) -> bool:
        """True when there are facts that can be folded and unfolded."""
        return self._card is not None and self._card.facts is not None and bool(self._card.facts.others)

    def fold(self) -> None:
        """Show the machine facts that are folded, or fold them again."""
        if self.foldable:
            self._unfolded = not self._unfolded
            at = self.scroll_offset.y
            self._draw()
            self.scroll_to(0, at, animate=False)

    def _draw(self) -> None:
        self._lines, self._needed = self._card.lines(unfolded=self._unfolded) if self._card is not None else ([], 0)
        self._wrap()
        self.scroll_to(0, 0, animate=False)
        self.refresh()

    def set_lines(self, lines: list[CardLine]) -> None:
        """Show these lines from their top, for reading only: they are no request, and never count as one that was
        shown.
        """
        self._put(lines, "")

    def set_together(self, lines: list[CardLine]) -> None:
        """Show one card for several requests from its top, all of which has to be seen."""
        self._put(lines, sha256("\n".join(line.text for line in lines).encode()).hexdigest())

    def _put(self, lines: list[CardLine], digest: str) -> None:
        self._view = None
        self._decides = bool(digest)
        self._card = None
        self._lines = lines
        self._needed = len(lines)
        self._hash = digest
        self._wrap()
        self.scroll_to(0, 0, animate=False)
        self.refresh()

    def on_resize(self) -> None:
        if self.size.width != self._wrapped:
            self._wrap()
        else:
            self._unseen = set(range(self._needed_rows))
        self.refresh()

    def _wrap(self) -> None:
        self._wrapped = self.size.width
        self._rows = []
        self._needed_rows = 0
        for at, line in enumerate(self._lines if self._wrapped else []):
            self._rows += [(mark, text, line.role) for mark, text in wrap(line, self._wrapped)]
            if at < self._needed:
                self._needed_rows = len(self._rows)
        self._unseen = set(range(self._needed_rows))
        set_content_size(self, Size(self._wrapped, len(self._rows)))

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
