"""One worker per session: whenever something changed it does what is `due`, and what that meets is waited out, tried
again, or held for a person.

A bad session disturbs only itself.
"""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections.abc import Callable

from harness.domain import problems
from harness.domain.problems import Trouble
from harness.eventlog.framing import LogError
from harness.events import types as t
from harness.supervisor.base.errors import Later, LinkLost, OpError, for_now
from harness.supervisor.fleet.session import Session, log_trouble
from harness.supervisor.money.budget_service import BudgetService
from harness.supervisor.sessions.brains import quarantine
from harness.supervisor.sessions.due_work import DueWork
from harness.supervisor.sessions.ending import unfinished

_NOW_AND_THEN_S = 120.0
_SPACE_S = 2.0
_WAITING = frozenset({"no_space", "scarce", "ledger", "mute"})
"""Refusals that only have to be waited out: a full disk, a ledger that cannot be written, a keeper that is stopped."""


class Conductor:
    """Runs the workers. ``displaced``: a newer supervisor rules."""

    def __init__(self, due: DueWork, budget_service: BudgetService, displaced: Callable[[], None]) -> None:
        self._due = due
        self._purse = budget_service
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
                over = await self._due.step(session)
                session.unblock("step")
                if over:
                    session.work.task = None
                    session.touch()
                    return
                session.troubles.mended("step")
            except Exception as exc:
                await self.met(session, exc)

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
            session.block("step", why)
        session.touch()
        session.work.poke.clear()
        self.later(session, seconds)

    def _refused(self, session: Session, exc: OpError) -> None:
        if exc.code in _WAITING:
            self._wait(session, _SPACE_S, problems.of_code(exc.code, exc.message))
            return
        if exc.code == "stale_epoch":
            self._displaced()
        elif exc.code in ("damaged", "newer", "foreign"):
            self._hold(session, problems.of_code(exc.code, exc.message))
        else:
            self._retry(session, problems.of_code(exc.code, exc.message + (f" ({exc.hint})" if exc.hint else "")))

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
        session.unblock("step")

    def release(self, session: Session) -> None:
        """The user wants something of it again: forget what was counted against it."""
        session.troubles.released()
        # what the ground or a call is held for stands until it was looked at again
        session.unblock("brain")
        self._purse.unasked(session)
        for falls in (session.work.keeper_falls, session.work.step_falls):
            falls.forgive()
        session.thinking.forgive()
        self.start(session)
