"""What each session has spent, one line each, dearest first."""

from __future__ import annotations

from collections.abc import Mapping

from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.strip import Strip

from harness.domain.text import formatting
from harness.views.cost_views import Paid, SessionPaid
from harness.views.session_views import SessionRow
from widgets.base import cells
from widgets.base.cells import Line
from widgets.base.palette import palette
from widgets.base.selectable_lines import SelectingLines
from widgets.fleet.budget_bar import share_text


class CostTable(SelectingLines):
    """One line a session, dearest first; the selection is pinned to a session."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: list[SessionRow] = []
        self._more: Mapping[str, SessionPaid] = {}
        self._removed = Paid()
        self.selected = ""

    def set_removed(self, removed: Paid) -> None:
        """What removed sessions had spent stands in a last line, without which the others do not add up."""
        self._removed = removed
        self._measure()

    def _measure(self) -> None:
        last = 1 if self._removed.spent_nano or not self._rows else 0
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._rows) + 1 + last)
        self.refresh()

    def set_rows(self, rows: list[SessionRow], more: Mapping[str, SessionPaid]) -> None:
        """Show these sessions; ``more`` are the ledger's entries by id."""
        self._rows = sorted(rows, key=lambda r: (-r.spent_nano, r.sid))
        self._more = more
        if all(r.sid != self.selected for r in rows):
            self.selected = self._rows[0].sid if self._rows else ""
        self._measure()

    def move(self, step: int) -> None:
        """Move the selection by so many lines."""
        ids = [r.sid for r in self._rows]
        if ids:
            at = max(0, min(len(ids) - 1, ids.index(self.selected) + step))
            self.selected = ids[at]
            self.scroll_to_region(Region(0, at if at == 0 else at + 1, 1, 1), animate=False, force=True)
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        at = event.y + self.scroll_offset.y - 1
        if 0 <= at < len(self._rows):
            self.selected = self._rows[at].sid
            self.refresh()

    def render_line(self, y: int) -> Strip:
        y += self.scroll_offset.y
        style = palette(self)
        width = self.scrollable_content_region.width
        base = self.rich_style
        line = Line(width)
        if y == 0:
            heads = ("   ", "session", "spent", "of cap", "", "tokens", "cached", "model")
            for text, cell in zip(heads, self._columns(), strict=True):
                line.left(
                    cells.fit(text, cell)
                    if text in ("   ", "session", "", "model")
                    else f"{text:>{max(0, cell - 2)}}"[:cell] + "  "[: min(2, cell)],
                    style["title"],
                )
            return line.strip(base)
        if y == len(self._rows) + 1:
            self._fill_removed(line, style)
            return line.strip(base)
        if y > len(self._rows):
            return Strip.blank(width, base)
        row = self._rows[y - 1]
        if row.sid == self.selected:
            base = base + style["chosen"]
        self._fill(line, row, style)
        return line.strip(base)

    def _columns(self) -> tuple[int, ...]:
        width = self.scrollable_content_region.width
        meter = 14 if width >= 100 else 0
        tokens, cached = (10, 9) if width >= 76 else (0, 0)
        model = 22 if width >= 120 else 0
        fixed = 3 + 11 + 16 + meter + tokens + cached + model
        return 3, max(10, width - fixed), 11, 16, meter, tokens, cached, model

    def _fill_removed(self, line: Line, style: Mapping[str, Style]) -> None:
        _, name, spent, cap, meter, tokens, *_ = self._columns()
        gone = self._removed
        if not gone.spent_nano:
            line.left("" if self._rows else "   No session has spent anything yet", style["quiet"])
            return
        line.left(cells.fit("   (removed)", 3 + name), style["quiet"])
        line.left(f"{formatting.spend_cell(gone.spent_nano, gone.unknown_nano):>{spent - 2}}  ", style["text"])
        if tokens:
            line.left(f"{'':{cap + meter}}{cells.count(gone.tokens):>{tokens - 2}}", style["text"])

    def _fill(self, line: Line, row: SessionRow, style: Mapping[str, Style]) -> None:
        _, name, spent, cap, meter, tokens, cached, model = self._columns()
        more = self._more.get(row.sid)
        used = row.spent_nano + row.reserved_nano
        near = row.cap_nano is not None and used >= row.cap_nano * 0.9
        line.left("▌" if row.sid == self.selected else " ", style["meter"])
        line.left(f"{cells.row_mark(row)} ", style[cells.role(row.state)]).left(
            cells.fit(cells.safe(row.name, name - 1), name), style["text"]
        )
        paid = formatting.spend_cell(row.spent_nano, row.unknown_nano)
        line.left(f"{paid:>{spent - 2}}  ", style["attention" if near else "text"])
        line.left(f"{share_text(used, row.cap_nano):>{cap - 2}}  ", style["quiet"])
        if meter:
            full, rest = cells.bar(used, row.cap_nano, meter - 2)
            line.left(full, style["attention" if near else "meter"]).left(
                cells.fit(rest, meter - len(full)), style["quiet"]
            )
        if tokens:
            hit = None if more is None else more.cache_hit
            share = "" if hit is None else f"{hit:.1%}"
            line.left(f"{cells.count(row.tokens):>{tokens - 2}}  ", style["text"]).left(
                f"{share:>{cached - 2}}  ", style["quiet"]
            )
        if model:
            line.left(cells.safe(row.model, model), style["quiet"])
