"""The lines that the wall draws around its panes: a pane's title, and what an empty wall says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from rich.style import Style
from textual.strip import Strip

from harness.views.session_views import SessionRow
from widgets.base import cells
from widgets.base.cells import Line
from widgets.panes import pane_title


class Frame(NamedTuple):
    """What of a pane its title shows beside its session: ``chosen`` it is the current one, ``focused`` and the wall has
    the keys; ``selected`` the list stands on its session; ``held`` says in a word that it is zoomed or pinned.
    """

    width: int
    chosen: bool
    focused: bool
    selected: bool
    held: str


def title(row: SessionRow | None, frame: Frame, style: Mapping[str, Style]) -> list[tuple[str, Style]]:
    """One title line: what it is, how it is, what it cost."""
    width = frame.width
    edge = style["meter" if frame.chosen else "border"]
    rule = "━" if frame.chosen and frame.focused else "─"
    mark = (frame.chosen and "▌") or (frame.selected and "▸") or rule
    if row is None:
        return [(mark, edge), (f" empty {rule * width}"[: max(0, width - 1)], edge)]
    line = Line(width).left(mark, edge).left(" ", edge)
    line.right(rule, edge)
    said = pane_title.said(row, width, held=frame.held)
    line.right(said.spent, style["quiet"])
    line.left(cells.row_mark(row) + " ", style[cells.role(row.state)])
    line.left(said.name, style["heading" if frame.chosen or frame.selected else "name"])
    line.left(said.state, style[cells.role(row.state)])
    line.left(frame.held, style["attention"])
    if row.plan_total:
        if len(said.plan) < line.room:
            (_, first), *meter = cells.plan(row, pane_title.meter(line.room - len(said.plan) - 1))
            for text, role in ((said.plan, first), *meter):
                line.left(text, style[role])
        line.left(" ", edge)
    strip = line.strip(Style.null(), rule, edge)
    return [(segment.text, segment.style or Style.null()) for segment in strip]


def hint(
    hints: tuple[tuple[str, str], ...], y: int, size: tuple[int, int], base: Style, style: Mapping[str, Style]
) -> Strip:
    """A line of the friendly empty wall, centred: keys and what they do, or words alone."""
    width, height = size
    top = max(0, (height - len(hints)) // 2)
    if not 0 <= y - top < len(hints):
        return Strip.blank(width, base)
    key, text = hints[y - top]
    line = Line(width)
    if not key:
        indent = max(0, (width - len(text)) // 2)
        return line.left(" " * indent, base).left(text, style["name" if y == top else "quiet"]).strip(base)
    block = max((len(k) + 2 + len(t) if k else 0 for k, t in hints), default=0)
    indent = max(0, (width - block) // 2)
    line.left(" " * indent, base).left(key.rjust(max(len(k) for k, _ in hints)), style["key"])
    return line.left("  " + text, style["quiet"]).strip(base)
