"""What clients may ask about what happened: a session's briefing, and what became of its requests."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness.eventlog.framing import LogError, seq_of, whole
from harness.eventlog.index import OffsetIndex
from harness.events import types as t
from harness.plan import order
from harness.reports import briefing, receipts
from harness.supervisor.base.errors import OpError
from harness.supervisor.fleet.session import Session
from harness.supervisor.serving.finding import Find
from harness.supervisor.serving.parts import Parts, text_of
from harness.supervisor.serving.server import Connection, Fields, Handler
from harness.workspace.git.errors import WorkspaceError

_READ_S = 25.0
"""Seconds that reading a log may take; a client waits half a minute for it."""
_PIECE = 1 << 20
_MOST = 1000
"""So many receipts of a session go into one reply, the newest."""


@dataclass(slots=True)
class Gathered:
    """What one log told so far."""

    seq: int = -1
    course: briefing.Briefing = field(default_factory=briefing.Briefing)
    history: receipts.History = field(default_factory=receipts.History)

    def take(self, line: bytes) -> None:
        """Go on with the next record."""
        record = t.decode(line)
        self.course.take(record)
        self.history.take(record)
        self.seq = record.seq


class BriefingOps:
    """``brief`` and ``receipts``. A log that was read once is read on from there."""

    def __init__(self, parts: Parts, find: Find) -> None:
        self._p = parts
        self._find = find
        self._gathered: dict[str, Gathered] = {}

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return {"brief": self.brief, "receipts": self.receipts}

    async def brief(self, c: Connection, m: Fields) -> briefing.Briefed:
        """What happened in one session at ``since`` or later, what it needs, and the entry of its plan that comes
        next.
        """
        session = await self._find(m)
        since = text_of(m, "since", 40) if m.get("since") else ""
        known = await self._read(session)
        plan = session.state.plan
        upcoming = order.next_entry(plan) if plan is not None and not session.state.terminal else None
        return briefing.Briefed(
            sid=session.sid,
            name=session.name,
            upcoming=f"{upcoming.id} {upcoming.title}" if upcoming is not None else "",
            brief=briefing.brief(known.course, since),
        )

    async def receipts(self, c: Connection, m: Fields) -> receipts.Receipts:
        """What became of the requests of one session, oldest first."""
        session = await self._find(m)
        known = await self._read(session)
        found = receipts.receipts(known.history)[-_MOST:]
        return receipts.Receipts(sid=session.sid, name=session.name, receipts=found)

    async def _read(self, session: Session) -> Gathered:
        """All that the log told up to now. It is nobody else's while it grows, so a reader that is given up spoils
        nothing.
        """
        known = self._gathered.pop(session.sid, None) or Gathered()
        stop = session.state.seq
        if known.seq < stop:
            start = known
            try:
                known = await session.look(
                    "reading what happened", _READ_S, lambda: read_on(session.folder.log, start, stop)
                )
            except (WorkspaceError, LogError, msgspec.DecodeError) as exc:
                raise OpError("unreadable", f"the log of {session.name} cannot be read: {exc}") from exc
        self._gathered = {sid: one for sid, one in self._gathered.items() if sid in self._p.fleet.sessions}
        self._gathered[session.sid] = known
        return known


def read_on(log: Path, known: Gathered, stop: int) -> Gathered:
    """``known``, gone on with up to record ``stop``.

    Raises OpError ``damaged``, LogError, msgspec.DecodeError, OSError.
    """
    index = OffsetIndex(log)
    try:
        while known.seq < stop:
            lines, _ = index.scan(known.seq + 1, _PIECE)
            for line in lines or [b""]:
                if known.seq == stop:
                    break
                if seq_of(line) != known.seq + 1 or not whole(line + b"\n"):
                    raise OpError("damaged", f"record {known.seq + 1} of this log is damaged", "see: watchfloor verify")
                known.take(line)
    finally:
        index.close()
    return known
