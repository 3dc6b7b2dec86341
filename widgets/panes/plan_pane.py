"""A session's plan in a pane of the wall; whoever has the plan brings it there."""

from __future__ import annotations

from widgets.log.log_rows import LogSource
from widgets.plan.plan_view import PlanView


class PlanPane(PlanView):
    """A `PlanView` with what the wall asks of everything that it shows."""

    def __init__(self) -> None:
        super().__init__()
        self.of: object = None
        """Changes with the session, so that what was looked at for another one is not taken for this one's."""

    def set_log(self, source: LogSource | None) -> None:
        """The pane has another session: nothing of it is known yet."""
        self.of = object()
        self.clear()

    def sync(self) -> bool:
        """Nothing waits here: a plan comes whole."""
        return False

    def tick(self) -> None:
        """Once a second: ages move on."""
        self.refresh()

    def action_page(self, pages: int) -> None:
        """Scroll by pages."""
        self.scroll_relative(y=pages * max(1, self.scrollable_content_region.height - 2), animate=False)
