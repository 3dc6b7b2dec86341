"""How a session ends: a stop that is carried out, and what follows its last record."""

from __future__ import annotations

import contextlib

from harness.agents.supervisor_requests import Settlement
from harness.domain.calls.call_states import CallEnd, CallStage
from harness.domain.states import State
from harness.events import types as t
from harness.keeper.loop.requests import CancelCall
from harness.linux.proc import Identity, alive
from harness.supervisor.base.errors import LinkLost, OpError
from harness.supervisor.calls.call_flow import CallFlow
from harness.supervisor.calls.repository import publishing
from harness.supervisor.fleet.session import Session
from harness.supervisor.money.budget_service import BudgetService
from harness.supervisor.sessions.brains import Brains
from harness.supervisor.sessions.keepers import Keepers
from harness.supervisor.sessions.taking.merging import Merging
from harness.supervisor.sessions.taking.pulling import Pulling

_CANCEL_WAIT = 20.0


def unfinished(session: Session) -> bool:
    """True when an ended session still has something that must be put away: a keeper, a lease, an open request."""
    s = session.state
    keeper = s.keeper is not None and alive(Identity(s.keeper.pid, s.keeper.start, s.keeper.boot))
    return (
        keeper
        or s.lease is not None
        or bool(s.approvals or s.unsettled)
        or s.merging.open is not None
        or s.pulling.open is not None
    )


class Ending:
    """Repeated from the log after a crash, step by step."""

    def __init__(
        self,
        keepers: Keepers,
        brains: Brains,
        call_flow: CallFlow,
        merging: Merging,
        pulling: Pulling,
        budget_service: BudgetService,
    ) -> None:
        self._keepers = keepers
        self._brains = brains
        self._call_flow = call_flow
        self._merging = merging
        self._pulling = pulling
        self._purse = budget_service

    async def stop(self, session: Session) -> None:
        """Carry out a stop: nothing runs, nothing is open, then the end is on record."""
        await self._brains.end(session)
        await self._brains.bury(session)
        s = session.state
        if s.lease is not None:
            await self._brains.step(session)  # adopts a living brain of an earlier supervisor, or ends its lease
            await self._brains.end(session)
            await self._brains.bury(session)
        for call in list(s.calls.open.values()):
            if call.stage == CallStage.STARTED:
                with contextlib.suppress(OpError):  # it may have ended just now
                    await session.keeper().ask(CancelCall(call.call_id))
                await self._gone(session, call.call_id)
        bodies: list[t.Body] = [t.ApprovalWithdrawn(approval_id=a, why="the session was stopped") for a in s.approvals]
        if s.request is not None:
            known = Settlement(0, "")
            with contextlib.suppress(OpError):  # the ledger cannot be asked now: nobody knows then
                known = await self._purse.settle(s.request.reservation, None)
            bodies.append(s.request.lost(known.usage, known.nano, known.source))
        for call in s.calls.open.values():
            if call.stage == CallStage.IN_DOUBT:
                bodies.append(
                    t.ToolResolved(
                        call_id=call.call_id,
                        resolution="unknown_told_model",
                        evidence="the session was stopped before this was settled",
                    )
                )
            else:
                bodies.append(
                    t.ToolEnded(call_id=call.call_id, status=CallEnd.CANCELLED, preview="The session was stopped.")
                )
        await session.append(
            *bodies, t.SessionEnded(outcome=State.STOPPED, reason=s.desired_reason or "stopped by you")
        )

    @staticmethod
    async def _gone(session: Session, call_id: str) -> None:
        await session.until(lambda: call_id not in session.state.calls.open, _CANCEL_WAIT)

    async def finish(self, session: Session) -> bool:
        """After the last record: open requests are withdrawn, the work is published, the keeper leaves.

        False when it goes on after all.
        """
        await self._brains.end(session, grace=2.0)
        await self._brains.bury(session)
        if session.state.lease is not None:
            await self._brains.step(session)
            await self._brains.end(session)
            await self._brains.bury(session)
        await self._purse.settle_open(session)
        if open_now := list(session.state.approvals):
            await session.append(*(t.ApprovalWithdrawn(approval_id=a, why="the session has ended") for a in open_now))
        # an undo comes before all of this, so that what it brought back is published, or after it
        async with session.lock:
            if not session.state.terminal:
                return False  # it was continued meanwhile
            await self._merging.settle(session)
            await self._pulling.settle(session)
            await publishing.last(session)
            await self._call_flow.at_end(session)
            await self._keepers.shut(session, kill=True)
            with contextlib.suppress(LinkLost):
                await session.until(lambda: session.link is None)
        await self._purse.conclude(session)
        session.touch()
        return True
