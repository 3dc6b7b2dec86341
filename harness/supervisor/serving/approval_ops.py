"""What clients may ask of the queue: the open requests, what each would change, the decision on one."""

from __future__ import annotations

from harness.events.replies import DONE, Approval, ApprovalList, Changes, Decided, Done
from harness.supervisor.errors import OpError
from harness.supervisor.serving.parts import Parts, text_of
from harness.supervisor.serving.server import Connection, Fields, Handler
from harness.supervisor.sessions import unanswered


class ApprovalOps:
    """``approvals``, ``approval``, ``changes``, ``decide``, ``defer``."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return {
            "approvals": self.open_approvals,
            "approval": self.approval,
            "changes": self.changes,
            "decide": self.decide,
            "defer": self.defer,
        }

    async def open_approvals(self, c: Connection, m: Fields) -> ApprovalList:
        return ApprovalList(approvals=await self._p.approvals.all())

    async def approval(self, c: Connection, m: Fields) -> Approval:
        approval_id = text_of(m, "approval_id")
        session = self._p.fleet.approval(approval_id, "not_found")
        return Approval(approval=await self._p.approvals.view(session, approval_id))

    async def changes(self, c: Connection, m: Fields) -> Changes:
        approval_id = text_of(m, "approval_id")
        offset = m.get("offset", 0)
        if isinstance(offset, bool) or not isinstance(offset, int):
            raise OpError("bad_request", "offset must be a whole number of characters")
        return await self._p.approvals.changes(self._p.fleet.approval(approval_id, "not_found"), approval_id, offset)

    async def decide(self, c: Connection, m: Fields) -> Decided:
        session = self._p.fleet.approval(text_of(m, "approval_id"))
        work = self._p.approvals.decide(m, c.by)
        return Decided(decision_id=await unanswered.answered(self._p.fleet, session, "the decision", work))

    async def defer(self, c: Connection, m: Fields) -> Done:
        await self._p.approvals.defer(text_of(m, "approval_id"), text_of(m, "until"))
        return DONE
