"""One line above the fleet's table: what is filtered, how it is ordered and grouped, and how much of it is shown."""

from __future__ import annotations

from dataclasses import dataclass, field

from textual.strip import Strip

from harness.domain.text.formatting import counted
from widgets.base import cells
from widgets.base.cells import Line
from widgets.base.lines import PaintedLines
from widgets.base.palette import palette
from widgets.fleet import timeline
from widgets.fleet.fleet_columns import arrow
from widgets.fleet.fleet_order import View


@dataclass(frozen=True, slots=True)
class Shown:
    """``text`` is the filter as it was typed, ``wrong`` what about it cannot be understood; then sessions."""

    view: View = field(default_factory=View)
    text: str = ""
    wrong: str = ""
    sessions: int = 0
    of: int = 0
    marked: int = 0
    hidden: int = 0


class ViewLine(PaintedLines):
    """Says `Shown`."""

    DEFAULT_CSS = "ViewLine { height: 1; }"

    def __init__(self, *, dom_id: str | None = None) -> None:
        super().__init__(id=dom_id)
        self._shown = Shown()

    def say(self, shown: Shown) -> None:
        """Show this."""
        if shown != self._shown:
            self._shown = shown
            self.refresh()

    def render_line(self, y: int) -> Strip:
        style = palette(self)
        shown = self._shown
        line = Line(self.size.width).left(" ", style["quiet"])
        if shown.wrong:
            return line.left(cells.safe(shown.wrong, line.room - 1), style["bad"]).strip(self.rich_style)
        count = f"{shown.sessions} of {shown.of}" if shown.text else counted(shown.of, "session")
        line.right(f" {count} ", style["quiet"])
        if shown.marked:
            hidden = f" ({shown.hidden} not shown)" if shown.hidden else ""
            line.right(f" {shown.marked} marked{hidden} ", style["attention"])
        order = f"sort:{shown.view.sort}{arrow(shown.view)}"
        group = f"  group:{shown.view.group}" if shown.view.group else ""
        if shown.text:
            line.left("/", style["key"]).left(cells.safe(shown.text, max(8, line.room - 30)) + "  ", style["text"])
        line.left(order + group, style["quiet"])
        if span := shown.view.span:
            line.left(f"  last {timeline.named(span)}  ", style["attention"])
            for text, role in timeline.legend():
                if cells.length(text.rstrip()) <= line.room:
                    line.left(text[: line.room], style[role])
        return line.strip(self.rich_style)
