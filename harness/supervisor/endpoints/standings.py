"""Which gates there are, and at which of them each session stands."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

from harness.domain.calls.attempt import AttemptKind
from harness.projections.state.session_state import SessionState
from harness.protocol.config.api_key import credential
from harness.protocol.config.config import Config, ConfigError
from harness.protocol.config.credential import Credential
from harness.supervisor.endpoints import endpoint_gate as g
from harness.supervisor.endpoints.credentials import Credentials, fingerprint
from harness.supervisor.endpoints.endpoint_gate import Key
from harness.supervisor.endpoints.gate_words import boottime
from harness.supervisor.fleet.session import Session


class Standings:
    """``gates`` by what they are called, ``at`` the gate of its endpoint that a session stands at, ``models`` the model
    that it asks when that is not its agent's.
    """

    def __init__(self, credentials: Credentials, config: Callable[[], Config]) -> None:
        self._credentials = credentials
        self._config = config
        self.gates: dict[Key, g.Gate] = {}
        self.at: dict[str, Key] = {}
        self.models: dict[str, str] = {}

    def credential(self, s: SessionState) -> Credential | None:
        """What the session asks its endpoint with."""
        if s.intent is None:
            return None
        configured: Credential | None = None
        # an unreadable key file is a missing key: the request says which endpoint needs one
        with contextlib.suppress(ConfigError):
            configured = credential(self._config())
        return self._credentials.find(s.intent.base_url, s.intent.credential, configured)

    def key(self, session: Session) -> Key:
        """The gate of its endpoint and key, as they are set now."""
        found = self.credential(session.state)
        url = session.state.intent.base_url if session.state.intent is not None else ""
        return Key(url, fingerprint(found) if found is not None else "")

    def gate(self, key: Key) -> g.Gate:
        """The gate, made when new: next to a closed one of the same endpoint it begins with a probe."""
        made = self.gates.get(key)
        if made is None:
            made = g.Gate()
            self.gates[key] = made
            closed = next(
                (k for k, other in self.gates.items() if k.url == key.url and not k.model and other.state != g.OPEN),
                None,
            )
            if closed is not None and key.name:
                other = self.gates[closed]
                now = boottime()
                made.doubt(AttemptKind.NETWORK if other.state == g.PERSON else other.why, other.message, now, now)
        return made

    def own(self, session: Session, key: Key) -> Key:
        """The gate of the model that it asks: its agent's, unless a judge or a planner of it asks another one."""
        agents = session.state.intent.model if session.state.intent is not None else ""
        return key._replace(model=self.models.get(session.sid, agents))

    def of(self, session: Session) -> tuple[Key, ...]:
        """The gates that the session stands at."""
        key = self.at.get(session.sid)
        if key is None or session.state.intent is None:
            return ()
        return tuple(k for k in (key, self.own(session, key)) if k in self.gates)
