"""What clients may ask of the queue: the open requests, what each would change, the decision on one and what became of
it.
"""

from __future__ import annotations

import contextlib

import msgspec

from harness.domain.calls.call_states import CallStage
from harness.domain.states import Desired
from harness.eventlog.index import OffsetIndex
from harness.events import types as t
from harness.supervisor.base.errors import LinkLost, OpError
from harness.supervisor.fleet.session import Session
from harness.supervisor.serving.parts import Parts, text_of
from harness.supervisor.serving.server import Connection, Fields, Handler
from harness.supervisor.sessions import unanswered
from harness.views.replies import DONE, Approval, ApprovalList, Changes, Decided, Done, Outcome

_WAIT_S = 3.0
"""Seconds that a decision has to take effect while somebody waits to hear of it."""
_READ_S = 5.0
_NEWEST = 200
"""Records in which the end of a call is looked for."""
_BEGUN = (CallStage.STARTED, CallStage.IN_DOUBT)


class ApprovalOps:
    """``approvals``, ``approval``, ``changes``, ``decide``, ``outcome``, ``defer``."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return {
            "approvals": self.open_approvals,
            "approval": self.approval,
            "changes": self.changes,
            "decide": self.decide,
            "outcome": self.outcome,
            "defer": self.defer,
        }

    async def open_approvals(self, c: Connection, m: Fields) -> ApprovalList:
        """Every open request of the fleet."""
        return ApprovalList(approvals=await self._p.approvals.all())

    async def approval(self, c: Connection, m: Fields) -> Approval:
        """One open request, with all that its card shows."""
        approval_id = text_of(m, "approval_id")
        session = self._p.fleet.approval(approval_id, "not_found")
        return Approval(approval=await self._p.approvals.view(session, approval_id))

    async def changes(self, c: Connection, m: Fields) -> Changes:
        """A piece of the comparison behind a request's card, from character ``offset`` on."""
        approval_id = text_of(m, "approval_id")
        offset = m.get("offset", 0)
        if isinstance(offset, bool) or not isinstance(offset, int):
            raise OpError("bad_request", "offset must be a whole number of characters")
        return await self._p.approvals.changes(self._p.fleet.approval(approval_id, "not_found"), approval_id, offset)

    async def decide(self, c: Connection, m: Fields) -> Decided:
        """Decide one open request."""
        session = self._p.fleet.approval(text_of(m, "approval_id"))
        work = self._p.approvals.decide(m, c.by)
        return Decided(decision_id=await unanswered.answered(self._p.fleet, session, "the decision", work))

    async def outcome(self, c: Connection, m: Fields) -> Outcome:
        """What became of a decided call, once that is known; waits a few seconds for it."""
        session = self._p.fleet.find(text_of(m, "sid"))
        asked = text_of(m, "approval_id")
        call_id = text_of(m, "call_id")
        with contextlib.suppress(LinkLost):  # what nobody saw yet is pending
            await session.until(lambda: _settled(session, asked, call_id), _WAIT_S)
        call = session.state.calls.open.get(call_id)
        if call is None:
            status = await session.look("how a call ended", _READ_S, lambda: _status(session, call_id))
            return Outcome(became="ended", status=status)
        if call.stage in _BEGUN:
            return Outcome(became="started")
        if call.approval_id in session.state.approvals and call.approval_id != asked:
            difference = session.track.changed.get(call_id, [])
            return Outcome(became="stale", again=call.approval_id, difference=difference)
        return Outcome(became="pending")

    async def defer(self, c: Connection, m: Fields) -> Done:
        """Put a request off until a time."""
        await self._p.approvals.defer(text_of(m, "approval_id"), text_of(m, "until"))
        return DONE


def _settled(session: Session, asked: str, call_id: str) -> bool:
    """True when the call began or is over, another request asks about it, or nothing of it happens for now."""
    state = session.state
    call = state.calls.open.get(call_id)
    if call is None or call.stage in _BEGUN:
        return True
    return state.desired != Desired.RUNNING or (call.approval_id in state.approvals and call.approval_id != asked)


def _status(session: Session, call_id: str) -> str:
    log = OffsetIndex(session.folder.log)
    try:
        for line in reversed(log.lines(len(log) - _NEWEST, len(log))):
            if b'"type":"tool.ended"' in line[:200] and f'"{call_id}"'.encode() in line:
                body = t.decode(line).body
                return body.status if isinstance(body, t.ToolEnded) else ""
    except msgspec.DecodeError:
        pass
    finally:
        log.close()
    return ""
