"""What brains may ask of the supervisor, once they said who they are: their endpoint's gate, and money."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import TypeVar

import msgspec

from harness.agents.supervisor_requests import (
    Admit,
    Admitted,
    Greet,
    Greeted,
    Heard,
    Reservation,
    Reserve,
    Settle,
    Settlement,
    TellDoing,
    TellLimits,
)
from harness.domain.cap import Cap
from harness.domain.model_limits import ModelLimits
from harness.domain.states import Desired
from harness.protocol.connection.op import Op
from harness.supervisor.base.errors import OpError
from harness.supervisor.calls.call_caps import ask_cap, over_cap
from harness.supervisor.fleet.session import Session
from harness.supervisor.money.budget_service import OverCap
from harness.supervisor.serving.parts import Parts
from harness.supervisor.serving.server import Connection, Fields, Handler, Reply
from harness.views.replies import DONE, Done

Asked = TypeVar("Asked", bound=Op[object])


class BrainOps:
    """The table of a brain's operations."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return dict(
            (
                _served(Greet, self._greet),
                _served(Admit, self._admit),
                _served(Heard, self._heard),
                _served(TellDoing, self._doing),
                _served(TellLimits, self._limits),
                _served(Reserve, self._reserve),
                _served(Settle, self._settle),
            )
        )

    async def _greet(self, c: Connection, who: Greet) -> Greeted:
        session = self._p.fleet.sessions.get(who.sid)
        if session is None:
            raise OpError("stale_lease", "there is no such session")
        if session.thinking.brain is None and (session.state.lease is not None or not session.loaded):
            raise OpError("not_ready", "the session is being taken up; try again")
        brain = self._p.brains.greet(session, who.gen, who.secret, c.by.pid)
        async with asyncio.timeout(15.0):
            await brain.leased.wait()
        c.session = session
        c.brain = brain
        return Greeted(self._p.epoch)

    @staticmethod
    def _of_brain(c: Connection) -> Session:
        session = c.session
        if session is None or session.thinking.brain is not c.brain:
            raise OpError("stale_lease", "another brain holds the lease")
        return session

    async def _admit(self, c: Connection, m: Admit) -> Admitted:
        session = self._of_brain(c)
        admitted = await self._p.gates.admit(session, m.endpoint, m.model, lambda: self._of_brain(c))
        if m.reserve is None or admitted.held:
            return admitted
        held = await self._reserve(c, m.reserve)
        return msgspec.structs.replace(admitted, reserved=held.id, reserved_nano=held.nano)

    async def _heard(self, c: Connection, _: Heard) -> Done:
        self._p.gates.heard(self._of_brain(c))
        return DONE

    async def _doing(self, c: Connection, m: TellDoing) -> Done:
        self._of_brain(c).told(m.what[:200], m.evidence[:500])
        return DONE

    async def _limits(self, c: Connection, m: TellLimits) -> Done:
        intent = self._of_brain(c).state.intent
        if intent is not None:
            self._p.brains.models.note(intent.base_url, m.model, ModelLimits.of(m.window, m.output, m.bytes))
        return DONE

    async def _reserve(self, c: Connection, wanted: Reserve) -> Reservation:
        session = self._of_brain(c)
        try:
            return await self._held(session, wanted)
        except OpError:
            self._p.gates.unsent(session)
            raise

    async def _held(self, session: Session, wanted: Reserve) -> Reservation:
        if session.state.desired != Desired.RUNNING:
            raise OpError("paused", f"the session is wanted {session.state.desired}")
        if session.blocked:
            raise OpError("held", session.blocked)
        late = over_cap(session, datetime.now(UTC))
        if late is not None and late.cap == Cap.SESSION_WALL and session.state.finish_up is None:
            await ask_cap(session, late)
            raise OpError("cap", f"the cap {late.cap} is reached: {late.used} of {late.limit} s")
        try:
            held = await self._p.budget_service.reserve(session, wanted)
        except OverCap as exc:
            await ask_cap(session, exc.reached)
            raise OpError("cap", str(exc)) from exc
        session.shown_anew()
        return held

    async def _settle(self, c: Connection, m: Settle) -> Settlement:
        session = self._of_brain(c)
        retry_in_s = None
        if m.outcome is None:
            self._p.gates.unsent(session)
        else:
            retry_in_s = self._p.gates.told(session, m.outcome)
        settled = await self._p.budget_service.settle(m.reservation, m.usage)
        if session.state.unsettled:
            session.wake()
        session.shown_anew()
        return msgspec.structs.replace(settled, retry_in_s=retry_in_s)


def _served(kind: type[Asked], handle: Callable[[Connection, Asked], Awaitable[Reply]]) -> tuple[str, Handler]:
    async def served(c: Connection, m: Fields) -> Reply:
        if c.brain is None and kind is not Greet:
            raise OpError("brain_hello_first", f"{kind.OP} is for brains that said brain_hello")
        try:
            asked = msgspec.convert(m, kind)
        except msgspec.ValidationError as exc:
            raise OpError("bad_request", f"{kind.OP}: {exc}") from exc
        return await handle(c, asked)

    return kind.OP, served
