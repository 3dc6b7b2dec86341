"""What clients may ask about a session's plan: how it stands now, by the log."""

from __future__ import annotations

from harness.plan.board import board, checks
from harness.supervisor.serving.finding import Find
from harness.supervisor.serving.server import Connection, Fields, Handler
from harness.views.plan_views import PlanShown


class PlanOps:
    """``plan``: answered from the fold, so it costs no look at any file."""

    def __init__(self, find: Find) -> None:
        self._find = find

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return {"plan": self.plan}

    async def plan(self, c: Connection, m: Fields) -> PlanShown:
        """The plan of a session and its checks, each as it stands."""
        state = (await self._find(m)).state
        return PlanShown(plan=board(state), checks=checks(state))
