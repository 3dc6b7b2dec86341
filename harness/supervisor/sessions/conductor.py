"""One worker per session: whenever something changed it looks at the fold and does what is due.

A bad session disturbs only itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
import time
import traceback
from collections.abc import Callable

from harness.events import trouble
from harness.events import types as t
from harness.events.call_states import CallEnd, CallStage
from harness.events.framing import LogError
from harness.events.states import Desired, State
from harness.events.trouble import Trouble
from harness.linux.proc import Identity, alive
from harness.supervisor.calls import publishing
from harness.supervisor.calls.call_flow import CallFlow
from harness.supervisor.calls.recall import Recall
from harness.supervisor.errors import Later, LinkLost, OpError, for_now
from harness.supervisor.fleet.session import Session, log_trouble
from harness.supervisor.money.cap_waits import CapWaits
from harness.supervisor.money.purse import Purse, Settled
from harness.supervisor.sessions.brains import Brains, quarantine
from harness.supervisor.sessions.keepers import Keepers
from harness.supervisor.sessions.launch import Launcher
from harness.supervisor.sessions.merging import Merging
from harness.supervisor.sessions.pulling import Pulling

_CANCEL_WAIT = 20.0
_NOW_AND_THEN_S = 120.0
_SPACE_S = 2.0
_WAITING = frozenset({"no_space", "scarce", "ledger", "mute"})
"""Refusals that only have to be waited out: a full disk, a ledger that cannot be written, a keeper that is stopped."""


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


def stopping(session: Session) -> bool:
    """True when its end can be carried out whatever holds it: stopping needs its keeper, and nothing of its
    worktree.
    """
    return session.link is not None and (session.state.terminal or session.state.desired == Desired.STOPPED)


class Conductor:
    """Runs the workers. ``displaced``: a newer supervisor rules."""

    def __init__(
        self,
        keepers: Keepers,
        brains: Brains,
        call_flow: CallFlow,
        launcher: Launcher,
        merging: Merging,
        pulling: Pulling,
        recall: Recall,
        purse: Purse,
        caps: CapWaits,
        displaced: Callable[[], None],
    ) -> None:
        self._keepers = keepers
        self._brains = brains
        self._call_flow = call_flow
        self._launcher = launcher
        self._merging = merging
        self._pulling = pulling
        self._recall = recall
        self._purse = purse
        self._caps = caps
        self._displaced = displaced
        self.closing = False

    def start(self, session: Session) -> None:
        """Give a session its worker (once)."""
        if session.work.task is None:
            session.work.task = asyncio.get_running_loop().create_task(
                self._work(session), name=f"session {session.sid}"
            )
        session.wake()

    def put_away(self, session: Session) -> None:
        """Give an ended session a worker that ends what was begun with it and sends its keeper home, if there is any;
        also when that keeper died of it.
        """
        if session.state.terminal and (session.link is not None or unfinished(session)):
            self.start(session)

    async def _work(self, session: Session) -> None:
        while not session.removing:
            await session.work.poke.wait()
            session.work.poke.clear()
            if self.closing:
                return
            try:
                if await self._step(session):
                    session.work.task = None
                    session.touch()
                    return
                session.unhinder("step")
                session.troubles.mended("step")
            except Exception as exc:
                await self.met(session, exc)

    async def _step(self, session: Session) -> bool:
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
        await self._settle(session)
        if s.terminal:
            return await self._finish(session)
        if s.desired == Desired.STOPPED:
            await self._stop(session)
            return False
        if session.quiet:
            return False
        if s.quarantined is not None:
            return False
        await self._launcher.create(session)
        await self._recall.step(session)
        await self._caps.step(session)
        await self._brains.step(session)
        await self._call_flow.step(session)
        return False

    async def _settle(self, session: Session) -> None:
        """What earlier brains left open is settled from the log, and what was settled late is said there."""
        await self._purse.conclude(session)
        if late := await self._purse.settled_late(session):
            await session.append(*late)

    async def _stop(self, session: Session) -> None:
        """Carry out a stop: nothing runs, nothing is open, then the end is on record.

        Repeated from the log after a crash.
        """
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
                    await session.keeper().call("cancel", call_id=call.call_id)
                await self._gone(session, call.call_id)
        bodies: list[t.Body] = [t.ApprovalWithdrawn(approval_id=a, why="the session was stopped") for a in s.approvals]
        if s.request is not None:
            known = Settled(0, "")
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

    async def _finish(self, session: Session) -> bool:
        """After the last record: open requests are withdrawn, the work is published, the keeper leaves.

        False when it goes on after all.
        """
        await self._brains.end(session, grace=2.0)
        await self._brains.bury(session)
        if session.state.lease is not None:
            await self._brains.step(session)
            await self._brains.end(session)
            await self._brains.bury(session)
        await self._settle(session)
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

    # -- trouble -----------------------------------------------------------------------------------

    async def met(self, session: Session, exc: Exception) -> None:
        """What work on a session ended in: waited out, tried again with pauses, held for a person, or put on record as
        a defect of ours.
        """
        ours = isinstance(exc, Later | LinkLost | OpError)
        if not ours and (later := for_now(exc, "a step of it")):
            self._wait(session, later.seconds, later.trouble)
        elif isinstance(exc, LogError):
            self._hold(session, log_trouble(exc))
        elif isinstance(exc, Later):
            self._wait(session, exc.seconds, exc.trouble)
        elif isinstance(exc, LinkLost):
            self._retry(session, Trouble("gone", str(exc)))
        elif isinstance(exc, OpError):
            self._refused(session, exc)
        elif isinstance(exc, OSError):
            self._retry(session, Trouble("silent", str(exc)))
        else:
            traceback.print_exception(exc, file=sys.stderr)
            await self._defect(session, exc)

    def _hold(self, session: Session, why: Trouble) -> None:
        session.left_alone(why)
        session.work.poke.clear()

    def _wait(self, session: Session, seconds: float, why: Trouble) -> None:
        """It ends by itself: look again after that time, however often. ``why`` is shown meanwhile."""
        if why:
            session.hinder("step", why)
        session.touch()
        session.work.poke.clear()
        self.later(session, seconds)

    def _refused(self, session: Session, exc: OpError) -> None:
        if exc.code in _WAITING:
            self._wait(session, _SPACE_S, trouble.of_code(exc.code, exc.message))
            return
        if exc.code == "stale_epoch":
            self._displaced()
        elif exc.code in ("damaged", "newer", "foreign"):
            self._hold(session, trouble.of_code(exc.code, exc.message))
        else:
            self._retry(session, trouble.of_code(exc.code, exc.message + (f" ({exc.hint})" if exc.hint else "")))

    def _retry(self, session: Session, why: Trouble) -> None:
        """Try again with growing pauses; after too many in a row within a minute only now and then, or when the user
        resumes it.
        """
        if self.closing or session.removing:
            return
        now = time.monotonic()
        session.work.got(session.track.done_seq)
        if session.work.keeper_falls.add(now):
            session.work.keeper_falls.forgive()
            session.troubles.fail("step", Trouble("gave_up", str(why)))
            self.later(session, _NOW_AND_THEN_S)
        else:
            self.later(session, session.work.keeper_falls.backoff())
            if session.link is None:
                session.troubles.fail("step", why)
        session.touch()
        session.work.poke.clear()

    async def _defect(self, session: Session, exc: Exception) -> None:
        """Our own defect while handling this session: recorded, retried with pauses, quarantined when it persists."""
        what = f"{type(exc).__name__}: {exc}"
        print(f"session {session.sid}: defect: {what}", file=sys.stderr, flush=True)
        too_many = session.work.step_falls.add(time.monotonic())
        try:
            await session.append(
                t.HarnessNote(
                    level="error", text=f"the supervisor met a defect of its own: {what}"[:2000], component="supervisor"
                )
            )
            if too_many:
                times = len(session.work.step_falls.times)
                session.work.step_falls.forgive()
                await quarantine(session, "supervisor", what[:500], times)
        except (OpError, LinkLost) as again:
            self._retry(session, Trouble("defect", f"{what}; and it could not be put on record: {again}"))
            return
        session.work.poke.clear()
        self.later(session, session.work.step_falls.backoff())

    def later(self, session: Session, seconds: float) -> None:
        """Look at the session again after that time."""
        asyncio.get_running_loop().call_later(max(0.0, seconds), session.wake)

    def freed(self, session: Session) -> None:
        """What its worker waits for was seen to: it need not be shown until it is looked at again."""
        session.unhinder("step")

    def release(self, session: Session) -> None:
        """The user wants something of it again: forget what was counted against it."""
        session.troubles.released()
        # what the ground or a call is held for stands until it was looked at again
        session.unhinder("brain")
        self._purse.unasked(session)
        for falls in (session.work.keeper_falls, session.work.step_falls):
            falls.forgive()
        session.thinking.forgive()
        self.start(session)
