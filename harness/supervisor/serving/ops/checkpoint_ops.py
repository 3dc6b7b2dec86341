"""What clients may ask about checkpoints: a table of operations of its own."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TypeVar

from harness.supervisor.fleet.session import Session
from harness.supervisor.serving.finding import Find
from harness.supervisor.serving.parts import Parts, text_of
from harness.supervisor.serving.server import Connection, Fields, Handler
from harness.supervisor.sessions import unanswered
from harness.supervisor.sessions.begin.launch_request import MAX_GOAL, MAX_NAME
from harness.supervisor.sessions.restoring import MAX_LABEL
from harness.views.checkpoint_views import CheckpointList, CheckpointMade, listed, shown
from harness.views.replies import ForkBegun
from harness.views.undo_views import Restored

T = TypeVar("T")


class CheckpointOps:
    """``checkpoints``, ``checkpoint``, ``restore``, ``fork``."""

    def __init__(self, parts: Parts, find: Find) -> None:
        self._p = parts
        self._find = find

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return {"checkpoints": self.listed, "checkpoint": self.make, "restore": self.restore, "fork": self.fork}

    async def listed(self, c: Connection, m: Fields) -> CheckpointList:
        """The checkpoints of a session, newest first."""
        return listed((await self._find(m)).state.checkpoints)

    async def make(self, c: Connection, m: Fields) -> CheckpointMade:
        """Make a checkpoint of a session as it is now."""
        session = await self._find(m)
        label = text_of(m, "label", MAX_LABEL)
        made = self._p.restoring.make(session, label, c.by)
        return CheckpointMade(checkpoint=shown(await self._answered(session, "the checkpoint", made)))

    async def restore(self, c: Connection, m: Fields) -> Restored:
        """Make a session's worktree what it was at a checkpoint."""
        session = await self._find(m)
        done = self._p.restoring.restore(session, text_of(m, "checkpoint"), c.by)
        return await self._answered(session, "the restoring", done)

    async def fork(self, c: Connection, m: Fields) -> ForkBegun:
        """Begin another session from a checkpoint of this one."""
        parent = await self._find(m)
        goal = text_of(m, "goal", MAX_GOAL)
        given = text_of(m, "name", MAX_NAME)
        made = self._p.restoring.fork(parent, text_of(m, "checkpoint"), given, goal.strip(), c.by)
        session = await self._answered(parent, "the fork", made)
        self._p.conductor.start(session)
        await self._p.budget_service.know_price(session)
        origin = session.state.intent.forked if session.state.intent is not None else None
        return ForkBegun(
            sid=session.sid,
            name=session.name,
            checkpoint_id=origin.checkpoint_id if origin is not None else "",
            warnings=self._p.gates.requests.warnings(session),
        )

    async def _answered(self, session: Session, what: str, work: Coroutine[object, object, T]) -> T:
        try:
            return await unanswered.answered(self._p.fleet, session, what, work)
        finally:
            self._p.conductor.put_away(session)  # it got its keeper only for this
