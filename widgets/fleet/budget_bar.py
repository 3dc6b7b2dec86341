"""A meter of money against a cap, one line: spent, of unknown outcome, reserved, the rest."""

from __future__ import annotations

from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

from harness.domain.text import formatting
from harness.views.session_views import FleetView
from widgets.base import cells
from widgets.base.cells import Line
from widgets.base.palette import palette


def share_text(used: int, cap: int | None) -> str:
    """``62% of $2``, or ``no cap``."""
    if cap is None:
        return "no cap"
    return f"{100 * used // cap if cap > 0 else 100}% of {formatting.cap_text(cap)}"


class BudgetBar(Widget):
    """``label ━━━━━━━╍╍───── $0.41 + $0.05 reserved, 23% of $2``; what is of unknown outcome is named apart."""

    DEFAULT_CSS = """
    BudgetBar {
        height: 1;
    }
    """

    def __init__(self, label: str, *, dom_id: str | None = None) -> None:
        super().__init__(id=dom_id)
        self._label = label
        self._spent = 0
        self._reserved = 0
        self._unknown = 0
        self._cap: int | None = None

    def set_money(self, spent_nano: int, reserved_nano: int, cap_nano: int | None, unknown_nano: int) -> None:
        """Amounts in nano-USD; a cap of None is no cap, ``unknown_nano`` a part of what is spent."""
        if (spent_nano, reserved_nano, cap_nano, unknown_nano) != (
            self._spent,
            self._reserved,
            self._cap,
            self._unknown,
        ):
            self._spent = spent_nano
            self._reserved = reserved_nano
            self._cap = cap_nano
            self._unknown = unknown_nano
            self.refresh()

    def set_today(self, fleet: FleetView) -> None:
        """Show what counts for today."""
        self.set_money(fleet.spent_today_nano, fleet.reserved_today_nano, fleet.day_cap_nano, fleet.unknown_today_nano)

    def set_whole(self, fleet: FleetView) -> None:
        """Show what counts for the fleet, over all time."""
        self.set_money(fleet.spent_total_nano, fleet.reserved_nano, fleet.fleet_cap_nano, fleet.unknown_total_nano)

    def _style(self, role: str) -> Style:
        return palette(self)[role]

    def render_line(self, y: int) -> Strip:
        used = self._spent + self._reserved
        reserved = f" + {formatting.money(self._reserved)} reserved" if self._reserved else ""
        text = f" {formatting.spend(self._spent, self._unknown)}{reserved}, {share_text(used, self._cap)}"
        line = Line(self.size.width).left(f"{self._label} ", self._style("quiet"))
        line.right(text, self._style("text"))
        if self._cap is not None:
            whole, rest = cells.bar(used, self._cap, min(40, line.room))
            spent = len(cells.bar(self._spent - self._unknown, self._cap, len(whole) + len(rest))[0])
            line.left(whole[:spent], self._style("alarm" if used >= self._cap else "meter"))
            line.left("╍" * (len(whole) - spent), self._style("second")).left(rest, self._style("border"))
        return line.strip(self.rich_style)
