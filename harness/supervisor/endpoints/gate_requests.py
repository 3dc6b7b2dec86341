"""What the gates ask a person, one request in the queue for all who wait, and what is said of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from harness.budget import prices
from harness.domain import endpoints
from harness.domain.endpoints import ITEM_KINDS, EndpointView
from harness.domain.states import Desired
from harness.events import types as t
from harness.projections.state.session_state import OpenApproval
from harness.protocol.config.config import Config
from harness.supervisor.endpoints import endpoint_gate as g
from harness.supervisor.endpoints import gate_words
from harness.supervisor.endpoints.endpoint_gate import Key
from harness.supervisor.endpoints.gate_words import boottime, wall
from harness.supervisor.endpoints.standings import Standings
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.fleet.session import Session


class GateRequests:
    """Of all gates; who waits at which is for `Gates` to change."""

    def __init__(self, standings: Standings, config: Callable[[], Config], fleet: Fleet) -> None:
        self._standings = standings
        self._config = config
        self._fleet = fleet
        self._asking: set[Key] = set()

    async def carry(self, session: Session) -> None:
        """Let one waiting session have the request of its gate in its log; withdraw what nobody needs to answer any
        more.
        """
        mine = [a for a in session.state.approvals.values() if a.kind in ITEM_KINDS and not a.call_id]
        if mine and session.lock.locked():
            return  # it is being decided this moment
        key = self._needs_person(session)
        if stale := [a for a in mine if key is None or str(a.detail.get("endpoint", "")) != key.label]:
            why = "nothing of it needs you any more" if key is None else "another request says it now"
            await session.append(*(t.ApprovalWithdrawn(approval_id=a.approval_id, why=why) for a in stale))
        if key is None or len(mine) > len(stale) or key in self._asking or self.carried(key) is not None:
            return
        self._asking.add(key)
        try:
            await session.append(
                gate_words.request(key, self._standings.gates[key], gate_words.how_to_set(self._config()))
            )
        finally:
            self._asking.discard(key)

    def _needs_person(self, session: Session) -> Key | None:
        for key in self._standings.of(session):
            gate = self._standings.gates[key]
            if (
                gate.state == g.PERSON
                and not gate.retried
                and session.sid in gate.line
                and session.state.desired == Desired.RUNNING
            ):
                # with another key it goes to another gate
                return key if key._replace(model="") == self._standings.key(session) else None
        return None

    def carried(self, key: Key) -> OpenApproval | None:
        """The open request of a gate, whoever has it."""
        for sid, at in self._standings.at.items():
            session = self._fleet.sessions.get(sid)
            if session is not None and at == key._replace(model=""):
                for approval in session.state.approvals.values():
                    if approval.kind in ITEM_KINDS and str(approval.detail.get("endpoint", "")) == key.label:
                        return approval
        return None

    def warnings(self, session: Session) -> list[str]:
        """What will hold up a session that was just launched."""
        intent = session.state.intent
        if intent is None:
            return []
        found = []
        key = self._standings.key(session)
        if not key.name:
            found.append(
                f"there is no key for {key.url}, so the session waits: {gate_words.how_to_set(self._config())}"
            )
        if not prices.lookup(intent.model).known:
            found.append(
                f"the model {intent.model} is in no price list here: it is counted at the dearest price known, and the"
                " endpoint may not know it"
            )
        closed = [
            (at, gate)
            for at in (key, key._replace(model=intent.model))
            if (gate := self._standings.gates.get(at)) is not None and gate.state != g.OPEN
        ]
        return [*found, *(endpoints.sentence(self._view(at, gate), datetime.now(UTC)) for at, gate in closed)]

    def views(self) -> tuple[EndpointView, ...]:
        """Every endpoint that somebody waits for."""
        return tuple(
            self._view(key, gate)
            for key, gate in self._standings.gates.items()
            if gate.state != g.OPEN and (gate.line or gate.flying)
        )

    def _view(self, key: Key, gate: g.Gate) -> EndpointView:
        return gate_words.view(key, gate, self._carrying(key, gate))

    def _carrying(self, key: Key, gate: g.Gate) -> str:
        """The open request that a closed gate needs answered; empty when there is none."""
        open_now = self.carried(key) if gate.state == g.PERSON else None
        return open_now.approval_id if open_now is not None else ""

    def words(self, session: Session) -> str:
        """What a session that stands in line waits for; empty when it does not."""
        now = boottime()
        at = ((key, self._standings.gates[key]) for key in self._standings.of(session))
        said = (gate_words.in_line(key, gate, session.sid, self._carrying(key, gate), now) for key, gate in at)
        return next(filter(None, said), "")

    def since(self, session: Session) -> str:
        """Since when the gate is closed that it stands at."""
        gates = (self._standings.gates[key] for key in self._standings.of(session))
        return next((wall(gate.since) for gate in gates if gate.state != g.OPEN), "")
