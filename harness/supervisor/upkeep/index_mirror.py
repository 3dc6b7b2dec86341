"""Ended sessions are put into the index once their log is closed, so that the next start need not read it."""

from __future__ import annotations

import asyncio

from harness.supervisor.base.threads import at_home
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.fleet.index import Entry, Index, mark_of
from harness.supervisor.fleet.session import Session

_GATHER_S = 0.2


class IndexMirror:
    """Writes behind the sessions that changed."""

    def __init__(self, fleet: Fleet, index: Index) -> None:
        self._fleet = fleet
        self._index = index
        self._changed: set[str] = set()
        self._event = asyncio.Event()

    def note(self, session: Session) -> None:
        """A session changed: when it has ended and is closed, it is due."""
        if session.sid in self._fleet.sessions and session.loaded and _closed(session):
            self._changed.add(session.sid)
            self._event.set()

    async def run(self) -> None:
        """Write what is due, until cancelled."""
        while True:
            await self._event.wait()
            await asyncio.sleep(_GATHER_S)
            self._event.clear()
            batch = self._changed
            self._changed = set()
            for sid in batch:
                session = self._fleet.sessions.get(sid)
                if session is None or not _closed(session):
                    continue
                mark = await at_home(mark_of, session.folder.log)
                self._index.put(Entry(sid, mark, True, self._fleet.row(session)))


def _closed(session: Session) -> bool:
    return session.link is None and session.state.terminal
