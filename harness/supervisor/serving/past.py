"""The requests of the past, as the logs of all sessions have them: what a rule would have covered is told from these.

Each log is read on from where it was read to; the newest `MOST` requests of a session are at hand.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness.domain.actions.action import Action, BadAction, from_wire
from harness.domain.calls.approval_kind import Request
from harness.domain.decision import Ruling
from harness.eventlog import blobs, reader
from harness.eventlog.framing import LogError
from harness.events import types as t
from harness.policy.decide import Verdict
from harness.supervisor.base.errors import OpError
from harness.supervisor.fleet.session import Session
from harness.workspace.git.errors import WorkspaceError

MOST = 500
_READ_S = 25.0
"""Seconds that reading a log may take; a client waits half a minute for it."""
_ABOUT = (b'"tool.judged"', b'"approval.')
_TYPE_WITHIN = 200
"""Bytes of a line within which its type stands."""


@dataclass(frozen=True, slots=True)
class Asked:
    """One request about a call, with the action that was asked about; ``decision`` is empty while it is open."""

    approval_id: str
    call_id: str
    title: str
    ts: str
    action: Action
    verdict: Verdict
    decision: str = ""


@dataclass(slots=True)
class _Told:
    """What one log said of requests, up to and with ``seq``."""

    seq: int = -1
    judged: dict[str, t.ToolJudged] = field(default_factory=dict)
    asked: dict[str, Asked] = field(default_factory=dict)


class Past:
    """Reads on demand, away from the loop."""

    def __init__(self) -> None:
        self._told: dict[str, _Told] = {}

    async def of(self, session: Session) -> list[Asked]:
        """Its requests about calls, the oldest first. Raises OpError."""
        told = self._told.setdefault(session.sid, _Told())
        try:
            await session.look("reading its requests", _READ_S, lambda: _read_on(told, session))
        except (WorkspaceError, LogError, msgspec.DecodeError, OSError) as exc:
            self._told.pop(session.sid, None)
            raise OpError("unreadable", f"the log of {session.name} cannot be read: {exc}") from exc
        return list(told.asked.values())

    async def everywhere(self, sessions: list[Session]) -> AsyncIterator[tuple[Session, list[Asked]]]:
        """Of every session whose log can be read."""
        self._told = {sid: told for sid, told in self._told.items() if any(s.sid == sid for s in sessions)}
        for session in sessions:
            if session.damaged or session.foreign:
                continue
            try:
                found = await self.of(session)
            except OpError:
                continue  # `verify` says what is wrong with it
            yield session, found


def records(folder: Path, after: int = -1) -> Iterator[t.Record]:
    """The records of a log that say how calls were judged and asked about. Raises LogError."""
    for line in reader.read(folder, after):
        head = line[:_TYPE_WITHIN]
        if any(name in head for name in _ABOUT):
            yield t.decode(line)


def action_on_record(judged: t.ToolJudged, stored: Path) -> Action | None:
    """What was judged, from the record or its blob; None when it cannot be read."""
    wire = judged.action
    try:
        if wire is None and judged.action_blob is not None:
            wire = json.loads(blobs.get(stored, judged.action_blob.sha))
        return from_wire(wire)
    except (BadAction, LogError, OSError, ValueError):
        return None


def _read_on(told: _Told, session: Session) -> None:
    for record in records(session.folder.log, told.seq):
        told.seq = record.seq
        body = record.body
        match body:
            case t.ToolJudged():
                told.judged = {body.call_id: body}  # a request follows the verdict that it comes from
            case t.ApprovalRequested(kind=Request.TOOL):
                judged = told.judged.get(body.call_id)
                action = None if judged is None else action_on_record(judged, session.folder.blobs)
                if judged is None or action is None:
                    continue
                verdict = Verdict(Ruling.ASK, judged.rule, judged.reason, body.risk)
                told.asked[body.approval_id] = Asked(
                    body.approval_id, body.call_id, body.title, record.ts, action, verdict
                )
                if len(told.asked) > MOST:
                    del told.asked[next(iter(told.asked))]
            case t.ApprovalDecided():
                _decided(told, body.approval_id, body.decision)
            case t.ApprovalStale():
                _decided(told, body.approval_id, "stale")
            case t.ApprovalWithdrawn():
                _decided(told, body.approval_id, "withdrawn")


def _decided(told: _Told, approval_id: str, decision: str) -> None:
    asked = told.asked.get(approval_id)
    if asked is not None:
        told.asked[approval_id] = Asked(
            asked.approval_id, asked.call_id, asked.title, asked.ts, asked.action, asked.verdict, decision
        )
