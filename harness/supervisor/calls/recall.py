"""What of memory a session's requests show: looked at whenever something changed, put on record when it is due."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from harness.memory import layer
from harness.memory.records import Entry, Place, Scope, Written
from harness.supervisor.base.errors import OpError
from harness.supervisor.base.threads import at_home
from harness.supervisor.calls.session_folder import private_of
from harness.supervisor.fleet.session import Session
from harness.supervisor.memories.book import MemoryBook, now_utc
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.tree.worktrees import open_worktree


class Later(Protocol):
    """Has a session looked at again after so many seconds."""

    def __call__(self, session: Session, seconds: float) -> None: ...


async def places(session: Session) -> list[Place]:
    """Whose memories a session is shown, the nearest first. Raises WorkspaceError."""
    tree = await at_home(open_worktree, private_of(session))
    return [Place(Scope.SESSION, session.sid), Place(Scope.REPOSITORY, str(tree.common)), Place(Scope.USER)]


class Recall:
    """Level-triggered: it compares what there is with what the log says was told."""

    def __init__(self, book: MemoryBook, later: Later) -> None:
        self._book = book
        self._later = later
        self._places: dict[str, list[Place]] = {}
        self._seen: dict[str, tuple[int, str]] = {}
        """By session: the state of memory that was looked at, and until when that holds by itself."""
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def of(self, session: Session) -> list[Place]:
        """`places`, which never change. Raises WorkspaceError."""
        if session.sid not in self._places:
            self._places[session.sid] = await places(session)
        return self._places[session.sid]

    async def step(self, session: Session) -> None:
        """Put on record what is due. Raises OpError, LinkLost.

        Memory that cannot be read holds up no session: it goes on with what it was shown.
        """
        async with self._locks[session.sid]:
            await self._step(session)

    async def _step(self, session: Session) -> None:
        intent = session.state.intent
        if session.state.created is None or intent is None:
            return
        try:
            memories = await self._book.read()
            mine = await self.of(session)
        except (OpError, WorkspaceError):
            return
        revision, until = self._seen.get(session.sid, (-1, ""))
        if revision == memories.revision and not until:
            return
        now = now_utc()
        if revision == memories.revision and until > now:
            return
        found = layer.layer(memories, mine, intent.goal, now)
        told = layer.due(memories, found, session.state.memory, session.state.requests > 0, mine, now)
        seen = memories.revision
        until = layer.next_expiry(memories, mine, now)
        if told is not None:
            await session.append(told)
        self._seen[session.sid] = (seen, until)
        if until:
            self._later(session, _seconds(now, until))

    def concerns(self, session: Session, entries: Sequence[Entry]) -> bool:
        """True when a change may be shown to this session."""
        mine = self._places.get(session.sid, [])
        return any(isinstance(entry, Written) and entry.place in mine for entry in entries)

    def forget(self, session: Session) -> None:
        """It has ended or was removed."""
        self._places.pop(session.sid, None)
        self._seen.pop(session.sid, None)
        self._locks.pop(session.sid, None)


def _seconds(now: str, until: str) -> float:
    left = datetime.fromisoformat(until) - datetime.fromisoformat(now)
    return min(86400.0, max(0.1, left.total_seconds()))
