"""What brains may ask of the supervisor, once they said who they are: their endpoint's gate, and money."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime

import msgspec

from harness.events import types as t
from harness.events.attempt import Admitted, Attempt, AttemptOutcome, Greeted, Reservation, Settlement
from harness.events.cap import Cap
from harness.events.model_limits import ModelLimits
from harness.events.replies import DONE, Done
from harness.events.states import Desired
from harness.supervisor.calls.call_caps import ask_cap, over_cap
from harness.supervisor.errors import OpError
from harness.supervisor.fleet.session import Session
from harness.supervisor.money.purse import CapReached
from harness.supervisor.serving.parts import Parts, number_of, text_of
from harness.supervisor.serving.server import Connection, Fields, Handler

MOST_GEN = 1 << 53


class BrainOps:
    """The table of a brain's operations."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return {
            "brain_hello": self.brain_hello,
            "admit": self.admit,
            "heard": self.heard,
            "doing": self.doing,
            "model_limits": self.model_limits,
            "reserve": self.reserve,
            "settle": self.settle,
        }

    async def brain_hello(self, c: Connection, m: Fields) -> Greeted:
        session = self._p.fleet.sessions.get(text_of(m, "sid"))
        if session is None:
            raise OpError("stale_lease", "there is no such session")
        if session.thinking.brain is None and (session.state.lease is not None or not session.loaded):
            raise OpError("not_ready", "the session is being taken up; try again")
        brain = self._p.brains.greet(session, number_of(m, "gen", -1, -1, MOST_GEN), text_of(m, "secret"), c.by.pid)
        await asyncio.wait_for(brain.leased.wait(), 15.0)
        c.session = session
        c.brain = brain
        return Greeted(self._p.epoch)

    @staticmethod
    def _of_brain(c: Connection) -> Session:
        session = c.session
        if session is None or session.thinking.brain is not c.brain:
            raise OpError("stale_lease", "another brain holds the lease")
        return session

    async def admit(self, c: Connection, m: Fields) -> Admitted:
        """Wait until the endpoint may be asked, then reserve what the request wants ``reserve``d with it."""
        session = self._of_brain(c)
        admitted = await self._p.gates.admit(
            session, text_of(m, "endpoint"), text_of(m, "model"), lambda: self._of_brain(c)
        )
        wanted = m.get("reserve")
        if wanted is None or admitted.held:
            return admitted
        if not isinstance(wanted, dict):
            self._p.gates.unsent(session)
            raise OpError("bad_request", "admit: what is to be reserved must be an object")
        held = await self.reserve(c, wanted)
        return msgspec.structs.replace(admitted, reserved=held.id, reserved_nano=held.nano)

    async def heard(self, c: Connection, m: Fields) -> Done:
        """The first words of a reply."""
        self._p.gates.heard(self._of_brain(c))
        return DONE

    async def doing(self, c: Connection, m: Fields) -> Done:
        """What the agent is at while it thinks, in its own words."""
        self._of_brain(c).told(text_of(m, "what")[:200], text_of(m, "evidence")[:500])
        return DONE

    async def model_limits(self, c: Connection, m: Fields) -> Done:
        """What the endpoint said of a model."""
        intent = self._of_brain(c).state.intent
        if intent is not None:
            limits = ModelLimits.of(m.get("window"), m.get("output"))
            self._p.brains.models.note(intent.base_url, text_of(m, "model"), limits)
        return DONE

    async def reserve(self, c: Connection, m: Fields) -> Reservation:
        session = self._of_brain(c)
        try:
            return await self._reserve(session, m)
        except OpError:
            self._p.gates.unsent(session)
            raise

    async def _reserve(self, session: Session, m: Fields) -> Reservation:
        if session.state.desired != Desired.RUNNING:
            raise OpError("paused", f"the session is wanted {session.state.desired}")
        if session.blocked:
            raise OpError("held", session.blocked)
        try:
            wanted = msgspec.convert(m, Attempt)
        except msgspec.ValidationError as exc:
            raise OpError("bad_request", f"reserve: {exc}") from exc
        late = over_cap(session, datetime.now(UTC))
        if late is not None and late.cap == Cap.SESSION_WALL and session.state.finish_up is None:
            await ask_cap(session, late)
            raise OpError("cap", f"the cap {late.cap} is reached: {late.used} of {late.limit} s")
        try:
            held = await self._p.purse.reserve(session, wanted)
        except CapReached as exc:
            await ask_cap(session, exc.reached)
            raise OpError("cap", str(exc)) from exc
        session.shown_anew()
        return held

    async def settle(self, c: Connection, m: Fields) -> Settlement:
        session = self._of_brain(c)
        usage: t.Usage | None = None
        if not m.get("unknown"):
            try:
                usage = msgspec.convert(m.get("usage"), t.Usage)
            except msgspec.ValidationError as exc:
                raise OpError("bad_request", f"settle: usage: {exc}") from exc
        retry_in_s = None
        if (said := m.get("outcome")) is None:
            self._p.gates.unsent(session)
        else:
            try:
                retry_in_s = self._p.gates.told(session, msgspec.convert(said, AttemptOutcome))
            except msgspec.ValidationError as exc:
                raise OpError("bad_request", f"settle: outcome: {exc}") from exc
        settled = await self._p.purse.settle(text_of(m, "reservation"), usage)
        if session.state.unsettled:
            session.wake()
        session.shown_anew()
        return msgspec.structs.replace(settled, retry_in_s=retry_in_s)
