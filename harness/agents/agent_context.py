"""What the host lays before an agent: the session as its log says it is, the means to add to it, and the accounts."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence

from harness.agents.accounts import Accounts
from harness.agents.agent import Agent
from harness.agents.journal import Journal
from harness.agents.peer import Link
from harness.domain.states import Desired
from harness.events import types as t
from harness.projections.state.session_state import SessionState

BLOB_FROM = 16 * 1024
"""Bytes from which a payload goes into a blob."""
_CLAIM = 2000
_TOLD_S = 2.0
"""Seconds between two words to the supervisor about what the agent is at; shorter thoughts are not told at all."""


class AgentContext:
    """One session's. Whoever serves is told of every record, in order, once."""

    def __init__(self, journal: Journal, accounts: Accounts) -> None:
        self._journal = journal
        self._agent: Agent | None = None
        self._told = 0.0
        self.accounts = accounts
        self.live = False
        """The history has been read: what comes now is new."""
        journal.on_record = self._hand

    def serves(self, agent: Agent) -> None:
        """Every record goes to this agent."""
        self._agent = agent

    @property
    def session(self) -> SessionState:
        """What the session is, by the one fold. Read only."""
        return self._journal.state

    @property
    def head(self) -> int:
        """Seq of the newest record that the agent has seen."""
        return self._journal.state.seq

    def _hand(self, record: t.Record) -> None:
        agent = self._agent
        assert agent is not None
        match record.body:
            case t.UserMessage() if self.live:
                agent.say(record)
            case t.ToolEnded() | t.ToolResolved() if self.live:
                agent.decide(record)
            case _:
                agent.feed(record)

    def follow(self, wait_s: float, other: Link | None = None) -> bool:
        """Take in new records, waiting up to so many seconds for one; True when there was one. Raises Lost."""
        return self._journal.follow(wait_s, other)

    def look(self) -> None:
        """To be called at every arrival while the agent thinks: hears of a lost keeper, a newer process and a stop, and
        tells the supervisor now and then what the agent is at. Raises Interruption.
        """
        self._journal.follow(0.0)
        agent = self._agent
        assert agent is not None
        if self.session.desired == Desired.STOPPED:
            agent.stop()
        now = time.monotonic()
        doing = agent.state()
        if doing is None:
            return
        if now - max(self._told, doing.since) >= _TOLD_S:
            self._told = now
            self.accounts.tell(doing)

    def append(self, bodies: Sequence[t.Body], head: int | None = None) -> int:
        """Append on the log that was thought about (up to ``head``, by default all that was seen), durably; the seq of
        the last record. Raises Conflict when the log has moved, Refused, Interruption.
        """
        return self._journal.append(bodies, expect=self.head if head is None else head)

    def append_anyway(self, bodies: Sequence[t.Body]) -> int:
        """The same wherever the log stands: for what has happened and cannot be thought over."""
        return self._journal.append(bodies)

    def remember(self, form: str, known: bytes) -> None:
        """Keep what the agent knows at the record that it is being fed, as JSON, for one that comes after it. Only to
        be asked from within ``feed``, ``say`` or ``decide``.
        """
        self._journal.remember(form, known)

    def put_blob(self, data: bytes, media: str) -> t.BlobRef:
        """Store a payload durably. Raises Interruption, Refused."""
        return self._journal.put_blob(data, media)

    def read_blob(self, ref: t.BlobRef) -> bytes:
        """A payload that fits its name. Raises OSError, ValueError."""
        return self._journal.read_blob(ref)

    def proposal(self, call_id: str, tool: str, given: dict[str, object], ref: str) -> t.ToolProposed:
        """The record of a call that is wanted; a large input is stored first. Raises Interruption, Refused."""
        data = json.dumps(given, ensure_ascii=False).encode()
        claim = str(given.get("why", ""))[:_CLAIM]
        if len(data) <= BLOB_FROM:
            return t.ToolProposed(call_id=call_id, tool=tool, input=given, ref=ref, claim=claim)
        blob = self.put_blob(data, "application/json")
        return t.ToolProposed(call_id=call_id, tool=tool, input_blob=blob, ref=ref, claim=claim)
