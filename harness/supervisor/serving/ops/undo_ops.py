"""What clients may take back of a session."""

from __future__ import annotations

from harness.supervisor.fleet.session import Session
from harness.supervisor.serving.finding import Find
from harness.supervisor.serving.parts import Parts, text_of
from harness.supervisor.serving.server import Connection, Fields, Handler
from harness.supervisor.sessions import unanswered
from harness.views.undo_views import Undone, UndoPoints


class UndoOps:
    """``undo`` and ``undo_points``, the states it can go back to."""

    def __init__(self, parts: Parts, find: Find) -> None:
        self._p = parts
        self._find = find

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return {"undo": self.undo, "undo_points": self.undo_points}

    async def undo(self, c: Connection, m: Fields) -> Undone:
        """Make a session's worktree what it was before a call."""
        session = await self._find(m)
        try:
            return await unanswered.answered(
                self._p.fleet, session, "the undo", self._p.undo.undo(session, text_of(m, "to"), c.by)
            )
        finally:
            self._settle_again(session)

    async def undo_points(self, c: Connection, m: Fields) -> UndoPoints:
        """States of a worktree that can be brought back."""
        session = await self._find(m)
        try:
            return await unanswered.answered(self._p.fleet, session, "the question", self._p.undo.points(session))
        finally:
            self._settle_again(session)

    def _settle_again(self, session: Session) -> None:
        """A session that has ended got its keeper only for this: its work is published anew and the keeper leaves."""
        if session.state.terminal and session.link is not None:
            self._p.conductor.start(session)
