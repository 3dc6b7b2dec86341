"""A session's context as one line: its layers as a bar against the size that it works in, with figures."""

from __future__ import annotations

from collections.abc import Mapping

from rich.cells import cell_len
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from harness.domain import request_layers
from harness.views.session_views import SessionRow
from widgets.base import cells
from widgets.base.cells import Line
from widgets.base.palette import palette

SHOWN = {
    request_layers.INSTRUCTIONS: ("fixed", "quiet"),
    request_layers.GOAL: ("goal", "text"),
    request_layers.MEMORY: ("memory", "second"),
    request_layers.HANDOFF: ("hand-off", "attention"),
    request_layers.TASK: ("task", "meter"),
    request_layers.RECENT: ("recent", "good"),
}
"""By layer, a short name and the role of its colour, each another one."""
_WIDEST = 40
_MARK = "▌"


def segments(layers: Mapping[str, int], working: int, width: int) -> list[tuple[str, int]]:
    """(layer, cells) of a bar of ``width`` cells that stands for ``working`` tokens, or for all of the layers when
    those are more. Each layer with a token has a cell, as far as there are that many.
    """
    held = [(name, tokens) for name, tokens in layers.items() if tokens > 0][: max(0, width)]
    whole = max(working, sum(tokens for _, tokens in held))
    spare = width - len(held)
    made: list[tuple[str, int]] = []
    seen = 0
    given = 0
    for name, tokens in held:
        seen += tokens
        upto = spare * seen // whole
        made.append((name, 1 + upto - given))
        given = upto
    return made


class ContextBar(Widget):
    """``context ▇▇▇▇▇▇▇──── 41.2k of 80.0k  ▌goal 310  ▌task 20.1k …``; nothing before the first reply."""

    DEFAULT_CSS = """
    ContextBar {
        height: 1;
        display: none;
        &.-known { display: block; }
    }
    """

    def __init__(self, *, dom_id: str | None = None) -> None:
        super().__init__(id=dom_id)
        self._layers: dict[str, int] = {}
        self._working = 0
        self._tokens = 0

    def set_row(self, row: SessionRow) -> None:
        """Show what this session's newest answered request held."""
        shown = row.layers, row.context_working, row.context_tokens
        if shown != (self._layers, self._working, self._tokens):
            self._layers, self._working, self._tokens = shown
            self.set_class(bool(row.layers), "-known")
            self.refresh()

    def _style(self, role: str) -> Style:
        return palette(self)[role]

    def render_line(self, y: int) -> Strip:
        line = Line(self.size.width).left(" context ", self._style("quiet"))
        of = f" of {cells.count(self._working)}" if self._working else ""
        figures = f" {cells.count(self._tokens)}{of} tokens"
        width = max(0, min(_WIDEST, line.room - len(figures) - 1))
        parts = segments(self._layers, self._working, width)
        for name, size in parts:
            line.left("█" * size, self._style(_role(name)))
        line.left("─" * (width - sum(size for _, size in parts)), self._style("border"))
        line.left(figures, self._style("text"))
        legend = [
            (f"{_short(name)} {cells.count(tokens)}", _role(name)) for name, tokens in self._layers.items() if tokens
        ]
        if sum(cell_len(text) + 3 for text, _ in legend) <= line.room:
            for text, role in legend:
                line.left(f"  {_MARK}", self._style(role)).left(text, self._style("quiet"))
        return line.strip(self.rich_style)


def layer_facts(row: SessionRow) -> list[tuple[str, str]]:
    """The layers in words, each with its tokens."""
    return [("", f"{name}: {tokens:,} tokens") for name, tokens in row.layers.items() if tokens]


def _short(name: str) -> str:
    return SHOWN.get(name, (name, "text"))[0]


def _role(name: str) -> str:
    return SHOWN.get(name, (name, "text"))[1]
