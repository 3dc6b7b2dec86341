"""What is due in one session, looked up in its fold: one step after the other, so that a restart needs no plan."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from harness.domain.problems import Trouble
from harness.domain.states import Desired
from harness.supervisor.base.errors import Later, OpError
from harness.supervisor.calls.call_flow import CallFlow
from harness.supervisor.calls.recall import Recall
from harness.supervisor.fleet.session import Session
from harness.supervisor.money.budget_service import BudgetService
from harness.supervisor.money.cap_waits import CapWaits
from harness.supervisor.sessions.begin.launch import Launcher
from harness.supervisor.sessions.brains import Brains
from harness.supervisor.sessions.ending import Ending, unfinished
from harness.supervisor.sessions.keepers import Keepers

_AGAIN_S = 2.0


def stopping(session: Session) -> bool:
    """True when its end can be carried out whatever holds it: stopping needs its keeper, and nothing of its
    worktree.
    """
    return session.link is not None and (session.state.terminal or session.state.desired == Desired.STOPPED)


class DueWork:
    """All that may be due, in its order: keeper, money, end, worktree, lessons, caps, brain, calls."""

    def __init__(
        self,
        keepers: Keepers,
        budget_service: BudgetService,
        ending: Ending,
        launcher: Launcher,
        recall: Recall,
        caps: CapWaits,
        brains: Brains,
        call_flow: CallFlow,
        may_work: Callable[[], Awaitable[None]],
    ) -> None:
        """``may_work`` raises OpError where nothing may begin on this machine now."""
        self._may_work = may_work
        self._keepers = keepers
        self._purse = budget_service
        self._ending = ending
        self._launcher = launcher
        self._recall = recall
        self._caps = caps
        self._brains = brains
        self._call_flow = call_flow

    async def step(self, session: Session) -> bool:
        """Everything that is due; True when this session needs no worker any more."""
        if session.loaded and session.state.terminal and session.link is None and not unfinished(session):
            await self._purse.conclude(session)
            return True
        if session.held and not stopping(session):
            return False
        await self._keepers.take_up(session)
        s = session.state
        # the launch that began it died: its keeper obeys us now, so no intent can follow
        if s.intent is None and not s.terminal and not session.quiet:
            await self._launcher.forget(session)
            return True
        if session.thinking.buried:
            await self._brains.bury(session)
        if session.thinking.brain is None:
            self._purse.unasked(session)
        await self._purse.settle_open(session)
        if s.terminal:
            return await self._ending.finish(session)
        if s.desired == Desired.STOPPED:
            await self._ending.stop(session)
            return False
        if session.quiet:
            return False
        if s.quarantined is not None:
            return False
        await self._launcher.create(session)
        await self._allowed()
        await self._recall.step(session)
        await self._caps.step(session)
        await self._brains.step(session)
        await self._call_flow.step(session)
        return False

    async def _allowed(self) -> None:
        """Nothing is spent and nothing run while it may not begin. Raises Later."""
        try:
            await self._may_work()
        except OpError as exc:
            raise Later(_AGAIN_S, Trouble("limits", exc.message)) from exc
