"""The list of open requests as one line-API widget; the selection is pinned to a request id and new requests never move
it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Set

from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from harness.domain import problems
from harness.domain.calls.approval_kind import AT_RISK, Request
from harness.domain.text import formatting
from harness.views.session_views import ApprovalView
from widgets.base import cells
from widgets.base.cells import Line
from widgets.base.lines import ScrolledLines
from widgets.base.palette import palette
from widgets.queue.queue_groups import QueueItem, alike, items
from widgets.queue.queue_head import by_weight

LINES = 2
_LOW = 2
"""Lines of a list too low for more than one line a request."""


class QueueList(ScrolledLines, inherit_bindings=False):
    """Two lines a request: who asks and how much is at stake, then what for; one with both where the list is low.

    It takes no key that turns a page: those are the card's, however many requests there are.
    """

    class Moved(Message):
        """The selection is now on another request (empty = none)."""

        def __init__(self, approval_id: str) -> None:
            super().__init__()
            self.approval_id = approval_id

    def __init__(self, *, dom_id: str | None = None) -> None:
        super().__init__(id=dom_id)
        self._all: list[ApprovalView] = []
        self._items: list[QueueItem] = []
        self._unfolded: set[str] = set()
        self._selected = ""
        self._ages: dict[str, tuple[str, str]] = {}
        """Since when each painted request waits, and the age that stands there."""

    @property
    def lines_each(self) -> int:
        """Lines that a request takes."""
        return 1 if self.size.height <= _LOW else LINES

    @property
    def selected(self) -> str:
        """Id of the selected request; empty when there is none."""
        return self._selected

    @property
    def views(self) -> list[ApprovalView]:
        """The requests that have a line, in the order shown."""
        return [item.view for item in self._items]

    @property
    def place(self) -> str:
        """Which line is selected of how many; empty while there is but one."""
        ids = [view.approval_id for view in self.views]
        return f"{ids.index(self._selected) + 1} of {len(ids)}" if self._selected in ids and len(ids) > 1 else ""

    @property
    def group(self) -> list[ApprovalView]:
        """The selected request and those like it."""
        return alike(self._all, self._selected)

    def set_views(self, views: Iterable[ApprovalView]) -> None:
        """Take the open requests.

        The selected one stays selected; when it is gone one like it follows, or else what stood after it.
        """
        before = [view.approval_id for view in self.views]
        like = [view.approval_id for view in self.group]
        self._all = by_weight(views, time.time())
        ids = {view.approval_id for view in self._all}
        if self._selected not in ids:
            at = before.index(self._selected) if self._selected in before else 0
            follow = [*like, *before[at + 1 :], *before[:at][::-1], *(view.approval_id for view in self._all)]
            self._select(next((x for x in follow if x in ids), ""))
        self._lay_out()

    def _lay_out(self) -> None:
        self._items = items(self._all, self._unfolded, self._selected)
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._items) * self.lines_each)
        self._ages.clear()
        self.refresh()

    def unfold(self) -> None:
        """Show each request of the selected one's group, or fold them again."""
        name = next((view.alike for view in self.group), "")
        if name:
            self._unfolded ^= {name}
            self._lay_out()
            self._reveal()

    def select(self, approval_id: str) -> bool:
        """Put the selection on a request; False when it is not open."""
        if all(view.approval_id != approval_id for view in self._all):
            return False
        self._select(approval_id)
        if all(view.approval_id != approval_id for view in self.views):
            self._lay_out()
        self._reveal()
        return True

    def move(self, step: int) -> None:
        """Move the selection by so many lines."""
        ids = [view.approval_id for view in self.views]
        if ids:
            at = ids.index(self._selected) if self._selected in ids else 0
            self.select(ids[max(0, min(len(ids) - 1, at + step))])

    def _select(self, approval_id: str) -> None:
        if approval_id != self._selected:
            left = self._selected
            self._selected = approval_id
            self.post_message(self.Moved(approval_id))
            self._repaint({left, approval_id})

    def tick(self, now: float) -> None:
        """Repaint the requests whose shown age changed."""
        old = {name for name, (ts, age) in self._ages.items() if formatting.age(ts, now) != age}
        if old:
            self._repaint(old)

    def _repaint(self, ids: Set[str]) -> None:
        """Paint the lines of these requests again, as far as they are in sight."""
        top = self.scroll_offset.y
        each = self.lines_each
        first = top // each
        width = self.size.width
        for at, item in enumerate(self._items[first : first + self.size.height // each + 1], first):
            if item.view.approval_id in ids:
                self.refresh(Region(0, at * each - top, width, each))

    def _reveal(self) -> None:
        at = next((i for i, item in enumerate(self._items) if item.view.approval_id == self._selected), None)
        if at is not None:
            each = self.lines_each
            self.scroll_to_region(Region(0, at * each, 1, each), animate=False, force=True)

    def on_resize(self) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._items) * self.lines_each)
        self._reveal()

    def on_click(self, event: events.Click) -> None:
        at = (event.y + self.scroll_offset.y) // self.lines_each
        if 0 <= at < len(self._items):
            self.select(self._items[at].view.approval_id)

    def _style(self, role: str) -> Style:
        return palette(self)[role]

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        base = self.rich_style
        at, part = divmod(y + self.scroll_offset.y, self.lines_each)
        if at >= len(self._items):
            return Strip.blank(width, base)
        item = self._items[at]
        view = item.view
        chosen = view.approval_id == self._selected
        if chosen:
            base = base + self._style("chosen" if self.has_focus else "selected")
        line = Line(width).left("▌" if chosen else " ", self._style("meter"))
        risk = self._style("alarm" if view.risk in ("critical", "high") else "attention")
        if part == 0:
            line.left("  └ " if item.inside else "", self._style("quiet"))
            line.left("! " if view.kind in problems.NO_REQUEST else "◆ ", risk)
            age = formatting.age(view.ts, time.time())
            self._ages[view.approval_id] = view.ts, age
            line.right(f"{age:>4} ", self._style("quiet"))
            at_risk = f" {view.risk}" if view.kind in AT_RISK else ""
            line.right(
                " deferred" if view.deferred is not None else at_risk,
                self._style("quiet") if view.deferred is not None else risk,
            )
            if self.lines_each == LINES:
                return line.left(cells.safe(view.session_name, line.room - 1), self._style("name")).strip(base)
            line.left(cells.safe(view.session_name, line.room // 3), self._style("name"))
        line.left("    " if item.inside and part else "  ", base)
        if item.size > 1 and not item.inside:
            line.left(f"{item.size} alike: ", self._style("attention"))
        if view.detail.get("changed"):
            line.left("changed since you looked: ", risk)
        if view.kind != Request.TOOL:
            line.left(problems.request(view.kind) + ": ", self._style("quiet"))
        return line.left(cells.safe(view.title, line.room - 1), self._style("text" if chosen else "quiet")).strip(base)
