"""The title of one session."""

from __future__ import annotations

from collections.abc import Sequence

from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from harness.domain.text import formatting
from harness.views.session_views import SessionRow
from widgets.base import cells
from widgets.base.cells import Line
from widgets.base.palette import palette

_PLAN = 10
"""Cells of a plan's progress in the title."""


class SessionLine(Widget):
    """The session's title line: state, name, what it does, money; below it, while something holds it up, what comes
    next and what can be done.
    """

    DEFAULT_CSS = """
    SessionLine {
        height: 1;
        background: $panel;
        &.-held { height: 2; }
        &.-held.-todo { height: 3; }
    }
    """

    def __init__(self) -> None:
        super().__init__()
        self._row: SessionRow | None = None
        self._advice: list[str] = []

    def set_row(self, row: SessionRow | None, advice: Sequence[str] = ()) -> None:
        """Show this row; ``advice``: a line each for what happens next by itself and what can be done, none when
        nothing holds it up.
        """
        if (row, [*advice]) != (self._row, self._advice):
            self._row = row
            self._advice = [*advice]
            self.set_class(bool(advice), "-held")
            self.set_class(len(advice) > 1, "-todo")
            self.refresh()

    def _style(self, name: str) -> Style:
        return palette(self)[name]

    def render_line(self, y: int) -> Strip:
        row = self._row
        line = Line(self.size.width)
        if y >= 1:
            said = self._advice[y - 1] if y <= len(self._advice) else ""
            return line.left("   " + cells.safe(said, line.room - 4), self._style("call" if y == 1 else "text")).strip(
                self.rich_style
            )
        if row is None:
            return line.left(" this session is gone", self._style("bad")).strip(self.rich_style)
        state = self._style(cells.role(row.state))
        line.left(f" {cells.row_mark(row)} ", state)
        spent = formatting.spend_cell(row.spent_nano, row.unknown_nano)
        line.right(f" {spent} of {formatting.cap_text(row.cap_nano)} ", self._style("quiet"))
        if row.plan_total:
            for text, role in reversed(((" ", "quiet"), *cells.plan(row, _PLAN), (" ·", "quiet"))):
                line.right(text, self._style(role))
        elif row.checks_total:
            line.right(
                f" checks {row.checks_passed}/{row.checks_total} ·",
                self._style("good" if row.checks_passed == row.checks_total else "quiet"),
            )
        line.left(cells.safe(row.name, max(10, line.room // 2)), self._style("name")).left(f"  {row.state} ", state)
        return line.left(cells.safe(row.detail, line.room - 1), self._style("quiet")).strip(self.rich_style)
