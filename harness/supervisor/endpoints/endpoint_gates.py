"""The gates of all endpoints: brains held back until they may ask, parked sessions woken when their turn comes."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
import time
from collections.abc import Callable
from datetime import datetime
from typing import assert_never

from harness.agents.supervisor_requests import Admitted, AttemptOutcome
from harness.domain.calls.attempt import WAITS, AttemptKind
from harness.domain.endpoints import ITEM_KINDS
from harness.domain.states import Desired, ParkedFor
from harness.projections.state.session_state import SessionState
from harness.protocol.config.config import Config
from harness.protocol.config.credential import Credential
from harness.supervisor.base.errors import OpError
from harness.supervisor.endpoints import endpoint_gate as g
from harness.supervisor.endpoints.credentials import Credentials
from harness.supervisor.endpoints.endpoint_gate import Key
from harness.supervisor.endpoints.gate_requests import GateRequests
from harness.supervisor.endpoints.gate_words import boottime
from harness.supervisor.endpoints.standings import Standings
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.fleet.session import Session

HOLD_S = 20.0
"""How long a brain may wait at a gate; one that must wait longer leaves, and its session is woken when its turn comes.
"""


class Gates:
    """All gates. ``nudge`` tells clients that the fleet's view changed."""

    def __init__(
        self, credentials: Credentials, config: Callable[[], Config], fleet: Fleet, nudge: Callable[[], None]
    ) -> None:
        self._credentials = credentials
        self._fleet = fleet
        self._nudge = nudge
        self._standings = Standings(credentials, config)
        self.requests = GateRequests(self._standings, config, fleet)
        self._bells: dict[str, asyncio.Event] = {}
        self._alarms: dict[Key, asyncio.TimerHandle] = {}
        self._shown: dict[Key, tuple[object, ...]] = {}
        self._settled = False
        fleet.observe(self._note)

    def credential(self, s: SessionState) -> Credential | None:
        """What the session asks its endpoint with."""
        return self._standings.credential(s)

    # -- asking ------------------------------------------------------------------------------------

    def _ask(self, session: Session, key: Key) -> g.Answer:
        sid = session.sid
        now = boottime()
        if self._standings.at.get(sid, key) != key:
            self.left(session)
        self._standings.at[sid] = key
        whole = self._standings.gate(key)
        own = self._standings.gates.get(self._standings.own(session, key))
        answer = own.may(sid, now) if own is not None else g.Go()
        if isinstance(answer, g.Go):
            answer = whole.may(sid, now)
            if own is not None and not isinstance(answer, g.Go):
                own.left(sid)
        else:
            whole.left(sid)
        self._after(session)
        return answer

    async def admit(self, session: Session, name: str, model: str, still: Callable[[], object]) -> Admitted:
        """Hold a brain for up to `HOLD_S` until its session may ask ``model``. ``still`` raises when the brain is not
        its brain any more.

        Raises OpError ``paused``, ``poison`` (only its own request fails).
        """
        assert session.state.intent is not None
        key = Key(session.state.intent.base_url, name)
        if self._standings.own(session, key).model != model:
            self.left(session)
            self._standings.models[session.sid] = model
        end = boottime() + HOLD_S
        bell = asyncio.Event()
        self._bells[session.sid] = bell
        try:
            while True:
                still()
                if session.state.desired != Desired.RUNNING:
                    self.left(session)
                    raise OpError("paused", f"the session is wanted {session.state.desired}")
                bell.clear()
                # it was forked before another key was given: its own would be refused
                if (now := self._standings.key(session).name) and now != name:
                    self.left(session)
                    return Admitted(held="its key was replaced; it goes on with the new one")
                answer = self._ask(session, key)
                match answer:
                    case g.Go():
                        for standing in self._standings.of(session):
                            self._standings.gates[standing].sent(session.sid, boottime())
                        self._after(session)
                        return Admitted(probe=answer.probe)
                    case g.Poison():
                        self._standings.gate(key).excuse(session.sid)
                        what = (
                            f"the endpoint failed {answer.times} times at this session's request while it answered"
                            " others"
                        )
                        raise OpError("poison", f"{what}: {answer.message}")
                    case g.Hold():
                        left = end - boottime()
                        if left <= 0 or self._long(session, end):
                            return Admitted(
                                held=self.requests.words(session) or "the endpoint is not to be asked now",
                                since=self.requests.since(session),
                            )
                    case _:
                        assert_never(answer)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(min(left, max(0.01, answer.until - boottime()))):
                        await bell.wait()
        finally:
            if self._bells.get(session.sid) is bell:
                del self._bells[session.sid]

    def _long(self, session: Session, end: float) -> bool:
        """True when waiting is known to be long: nothing is gained by a process that waits."""
        return any(
            (gate.state == g.PERSON and not gate.retried)
            or (gate.state == g.LIMITED and not gate.probe and gate.next_try > end)
            for gate in (self._standings.gates[k] for k in self._standings.of(session))
        )

    def may_wake(self, session: Session) -> bool:
        """False while a session that has nothing to do but to ask its endpoint must wait; it is poked when its turn
        comes.
        """
        if not self._settled:
            return False
        key = self._standings.key(session)
        if not key.name:
            gate = self._standings.gate(key)
            if gate.state != g.PERSON or gate.retried:
                gate.told("", AttemptOutcome(AttemptKind.NO_KEY), boottime(), 0.0)
            self._ask(session, key)
            return False
        s = session.state
        if s.requests and not (s.parked is not None and s.parked.why == ParkedFor.LIMITED):
            return True  # there may be more to do than to ask; its brain asks for itself
        return not isinstance(self._ask(session, key), g.Hold)

    # -- outcomes ----------------------------------------------------------------------------------

    def heard(self, session: Session) -> None:
        """The first words of a reply have come."""
        for key in self._standings.of(session):
            self._standings.gates[key].heard(session.sid, boottime(), random.random())
        self._after(session)

    def told(self, session: Session, outcome: AttemptOutcome) -> float | None:
        """What came of its request; seconds until the endpoint is asked again, when that is known."""
        intent = session.state.intent
        if intent is None:
            return None
        key = self._standings.at.setdefault(session.sid, self._standings.key(session))
        own = self._standings.own(session, key)
        now = boottime()
        roll = random.random()
        if outcome.kind == AttemptKind.MODEL_UNKNOWN or own in self._standings.gates:
            if outcome.kind in (AttemptKind.OK, AttemptKind.MODEL_UNKNOWN):
                self._standings.gate(own).told(session.sid, outcome, now, roll)
            else:
                self._standings.gates[own].left(session.sid)
        if outcome.kind == AttemptKind.AUTH:
            self._credentials.mark_bad(key.name)
        gate = self._standings.gate(key)
        gate.told(
            session.sid,
            AttemptOutcome(AttemptKind.ANSWERED) if outcome.kind == AttemptKind.MODEL_UNKNOWN else outcome,
            now,
            roll,
        )
        self._after(session)
        return gate.next_try - now if gate.state in (g.DOWN, g.LIMITED) else None

    def unsent(self, session: Session) -> None:
        """What was let through is not asked, or nobody will hear what came of it."""
        for key in self._standings.of(session):
            self._standings.gates[key].lost(session.sid)
        self._after(session)

    def left(self, session: Session) -> None:
        """The session does not want to ask."""
        standing = self._standings.of(session)
        self._standings.models.pop(session.sid, None)
        if not standing:
            return
        for key in standing:
            gate = self._standings.gates[key]
            gate.ended(session.sid) if session.state.terminal else gate.left(session.sid)
        self._after(session)
        del self._standings.at[session.sid]
        for key in standing:
            self._stir(key)
            gate = self._standings.gates[key]
            if key.model and gate.state == g.OPEN:
                self._drop(key)
            elif gate.state == g.PERSON and not gate.line and not gate.flying:
                self._drop(key)  # who comes next finds out anew

    def _drop(self, key: Key) -> None:
        del self._standings.gates[key]
        self._shown.pop(key, None)
        if (alarm := self._alarms.pop(key, None)) is not None:
            alarm.cancel()

    def retry(self, session: Session) -> None:
        """A person wants it tried again now."""
        for key in self._standings.of(session):
            self._standings.gates[key].answered(boottime())
        self._after(session)

    def answered(self, label: str) -> None:
        """A person answered the request of that gate: one session tries, and with it all go on."""
        for key, gate in list(self._standings.gates.items()):
            if key.label == label:
                gate.answered(boottime())
                self._stir(key)
                self._settle(key)

    def rekeyed(self) -> None:
        """The settings or the key file changed: who would ask with another key now looks again, and nobody needs to say
        retry.
        """
        for sid, at in list(self._standings.at.items()):
            if (session := self._fleet.sessions.get(sid)) is not None and self._standings.key(session) != at:
                self._ring(sid)

    # -- the clock ---------------------------------------------------------------------------------

    def _after(self, session: Session) -> None:
        for key in self._standings.of(session):
            self._settle(key, session.sid)

    def _settle(self, key: Key, but: str = "") -> None:
        """Whatever changed at a gate: ring those who may go (who did it knows), set its alarm, tell who looks."""
        gate = self._standings.gates[key]
        now = boottime()
        for sid in gate.wake(now):
            if sid != but:
                self._ring(sid)
        if (alarm := self._alarms.pop(key, None)) is not None:
            alarm.cancel()
        if (due := gate.due(now)) is not None:
            self._alarms[key] = asyncio.get_running_loop().call_later(max(0.01, due - now), self._alarm, key)
        shown = (gate.state, gate.why, gate.message, gate.since, gate.next_try, gate.retried)
        if shown != self._shown.get(key, (g.OPEN, "", "", gate.since, gate.next_try, False)):
            self._shown[key] = shown
            self._stir(key)
        self._nudge()

    def _alarm(self, key: Key) -> None:
        self._alarms.pop(key, None)
        if key in self._standings.gates:
            self._settle(key)

    def _ring(self, sid: str) -> None:
        if (bell := self._bells.get(sid)) is not None:
            bell.set()
        elif (session := self._fleet.sessions.get(sid)) is not None:
            session.wake()

    def _stir(self, key: Key) -> None:
        """Have everybody at the gate look again: rows say something else, and who carries its request may change."""
        for sid, at in list(self._standings.at.items()):
            if at == key._replace(model="") and (session := self._fleet.sessions.get(sid)) is not None:
                session.touch()

    def _note(self, session: Session) -> None:
        """A session changed: one that is not wanted running does not wait for anything."""
        if session.sid not in self._standings.at:
            return
        if session.state.desired != Desired.RUNNING or session.state.terminal or session.removing:
            if (bell := self._bells.get(session.sid)) is not None:
                bell.set()
            elif session.thinking.brain is None:
                self.left(session)

    # -- after a restart ---------------------------------------------------------------------------

    def recall(self, session: Session) -> None:
        """What a session's log tells of its endpoint, so that a new supervisor asks with one probe too."""
        s = session.state
        if s.terminal or s.desired != Desired.RUNNING or s.intent is None:
            return
        item = next((a for a in s.approvals.values() if a.kind in ITEM_KINDS), None)
        failed = s.last_failure if s.last_failure is not None and s.last_failure.kind in WAITS else None
        limited = s.parked is not None and s.parked.why == ParkedFor.LIMITED
        if item is None and failed is None and not limited:
            return
        key = self._standings.key(session)
        if item is not None:
            key = Key.labelled(str(item.detail.get("endpoint", ""))) or key
        why: str = AttemptKind.NETWORK
        message = ""
        since = s.last_ts
        if s.parked is not None:
            message = s.parked.detail
            since = s.parked.since or since
        if failed is not None:
            why = failed.kind
            message = failed.message
        if item is not None:
            why = str(item.detail.get("why", AttemptKind.AUTH))
            message = str(item.detail.get("message", ""))
            since = item.ts
        now = boottime()
        with contextlib.suppress(ValueError):
            ago = max(0.0, time.time() - datetime.fromisoformat(since).timestamp())
            kind = AttemptKind(why)
            if kind == AttemptKind.AUTH:
                self._credentials.mark_bad(key.name)
            gate = self._standings.gates.setdefault(key, g.Gate())
            gate.doubt(kind, message, now - ago, now, asked=item is not None)
            if item is not None:  # it goes on carrying the request, so that a person finds the one they know
                self._standings.at[session.sid] = key._replace(model="")
                if key.model:
                    self._standings.models[session.sid] = key.model
                gate.line.setdefault(session.sid, -math.inf)

    def begin(self) -> None:
        """Every log was read: sessions may be woken from now on."""
        self._settled = True
        for session in self._fleet:
            session.wake()
