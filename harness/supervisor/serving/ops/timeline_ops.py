"""What clients may ask about the course of time: when a session ran, waited, stood still and ended."""

from __future__ import annotations

from harness.domain.state_span import Timeline
from harness.supervisor.serving.finding import Find
from harness.supervisor.serving.server import Connection, Fields, Handler


class TimelineOps:
    """``timeline``: answered from the fold; a log that nobody read yet is read once."""

    def __init__(self, find: Find) -> None:
        self._find = find

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return {"timeline": self.timeline}

    async def timeline(self, c: Connection, m: Fields) -> Timeline:
        """When a session ran, waited, stood still and ended, oldest first."""
        session = await self._find(m)
        return Timeline(stretches=list(session.state.stretches.all))
