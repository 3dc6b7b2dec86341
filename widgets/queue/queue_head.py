"""The head of the queue on the floor: the request that most deserves an answer now, and how many more there are."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip

from harness.domain import problems
from harness.domain.text import formatting
from harness.views.session_views import ApprovalView, SessionRow
from widgets.base import cells
from widgets.base.cells import Line
from widgets.base.lines import PaintedLines
from widgets.base.palette import palette

STAKES = {"critical": 4.0, "high": 2.0, "medium": 1.0, "low": 0.5}
_UNIT_S = 60.0
_ROOMY = 100
"""From so many cells on, how many more there are is said again beside the key that opens them."""


def weight(view: ApprovalView, now: float) -> float:
    """Stake times age: a minute-old critical request stands before a three-minute-old medium one; deferred ones come
    after them, and last what asks nothing, first of it what nobody put off.
    """
    then = formatting.parse_ts(view.ts)
    waited = max(0.0, now - then) if then is not None else 0.0
    if view.kind in problems.NO_REQUEST:
        return 0.0 if view.deferred is None else -1.0
    value = STAKES.get(view.risk, 1.0) * (1.0 + waited / _UNIT_S)
    return value * 1e-6 if view.deferred is not None else value


def by_weight(views: Iterable[ApprovalView], now: float) -> list[ApprovalView]:
    """The queue's order: most deserving first; equal ones by id, so that the order is total."""
    return sorted(views, key=lambda v: (-round(weight(v, now), 3), v.approval_id))


class QueueHead(PaintedLines):
    """Two lines: a rule with the count, and the request itself."""

    DEFAULT_CSS = """
    QueueHead {
        height: 2;
    }
    """

    class Opened(Message):
        """The user clicked the head of the queue."""

        def __init__(self, approval_id: str) -> None:
            super().__init__()
            self.approval_id = approval_id

    def __init__(self, *, dom_id: str | None = None) -> None:
        super().__init__(id=dom_id)
        self._views: tuple[ApprovalView, ...] = ()
        self._key = ""
        self._age = ""
        self._held: list[SessionRow] = []

    def set_queue(self, views: Iterable[ApprovalView], key: str) -> None:
        """The open requests, and the key (as shown) that opens the queue."""
        taken = tuple(views)
        if (taken, key) != (self._views, self._key):
            self._views = taken
            self._key = key
            self.refresh()

    def set_held(self, held: Sequence[SessionRow]) -> None:
        """Sessions that need a person without asking anything: counted, and named here while there is no request."""
        if list(held) != self._held:
            self._held = list(held)
            self.refresh()

    def tick(self, now: float) -> None:
        """Repaint when the age shown changed."""
        head = self.head
        age = formatting.age(head.ts, now) if head else ""
        if age != self._age:
            self._age = age
            self.refresh()

    @property
    def head(self) -> ApprovalView | None:
        """The request that is shown."""
        return next(iter(by_weight(self._views, time.time())), None)

    def on_click(self, event: events.Click) -> None:
        if head := self.head:
            self.post_message(self.Opened(head.approval_id))

    def _style(self, role: str) -> Style:
        return palette(self)[role]

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        base = self.rich_style
        rule = self._style("border")
        quiet = self._style("quiet")
        head = self.head
        if y == 0:
            line = Line(width).left("─ ", rule)
            if head is None:
                line.left("queue ", quiet)
            else:
                line.left(f"◆ {formatting.counted(len(self._views), 'open request')} ", self._style("call"))
                if self._held:
                    line.left(f"· {formatting.counted(len(self._held), 'session')} to look at ", quiet)
            return line.strip(base, "─", rule)
        if head is None and self._held:
            first = self._held[0]
            more = len(self._held) - 1
            line = Line(width).left(" ! ", self._style("call")).right(f"+{more} more " if more else "", quiet)
            line.left(cells.safe(first.name, max(8, width // 4)), self._style("call")).left(
                f": {cells.safe(first.detail, width)}", self._style("text")
            )
            return line.left(f" · {cells.safe(first.do, width)}" if first.do else "", quiet).strip(base)
        if head is None:
            return Line(width).left(" ✓ ", self._style("good")).left("Nothing needs you.", quiet).strip(base)
        line = Line(width).left(" ", quiet)
        more = len(self._views) + len(self._held) - 1
        others = f" and {more} more" if more and width >= _ROOMY else ""
        line.right(f"{self._key} opens it{others} ", quiet).right(f" {formatting.age(head.ts, time.time())} · ", quiet)
        risk = self._style("alarm" if head.risk in ("critical", "high") else "attention")
        line.left(cells.safe(head.session_name, max(8, width // 4)) + " ", self._style("call"))
        line.left(problems.request(head.kind) + ": ", quiet)
        if head.risk in ("critical", "high"):
            line.right(f"{head.risk} ", risk)
        return line.left(cells.safe(head.title, line.room - 1), self._style("text")).strip(base)
