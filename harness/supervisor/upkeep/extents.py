"""How many lines each session has changed, for the rows that somebody looks at: counted beside everything else, one
session at a time, when it has come to rest or a minute after the last count. While nobody looks, nothing is counted.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

from harness.supervisor.calls.session_folder import private_of
from harness.supervisor.fleet.fleet import Fleet, work_of
from harness.supervisor.fleet.session import Session
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.tree.diff import extent
from harness.workspace.tree.worktrees import open_worktree

_LOOK_S = 20.0
_AGAIN_S = 60.0
"""Seconds between two counts of a session that is at work."""
_TURN_S = 1.0


class Extents:
    """Keeps `Session.extent` of all sessions true enough to look at."""

    def __init__(self, fleet: Fleet, looked_at: Callable[[], bool]) -> None:
        self._fleet = fleet
        self._looked_at = looked_at
        self._late: set[str] = set()
        self._event = asyncio.Event()
        fleet.observe(self._note)

    def _note(self, session: Session) -> None:
        if session.extent.of != work_of(session):
            self._late.add(session.sid)
            self._event.set()

    async def run(self) -> None:
        """Count what is due, until cancelled."""
        while True:
            await self._event.wait()
            await asyncio.sleep(_TURN_S)
            if self._looked_at():
                for sid in list(self._late):
                    await self._turn(sid)
            if not self._late:
                self._event.clear()

    async def _turn(self, sid: str) -> None:
        session = self._fleet.sessions.get(sid)
        if session is None or not countable(session) or session.extent.of == work_of(session):
            self._late.discard(sid)
        elif due(session, time.monotonic()):
            self._late.discard(sid)
            await self._count(session)

    async def _count(self, session: Session) -> None:
        of = work_of(session)
        session.extent.of = of
        session.extent.at = time.monotonic()
        async with session.lock:  # a removal comes before or after
            with contextlib.suppress(WorkspaceError, OSError):  # no worktree any more: what was counted last stays
                session.extent.found = await session.look(
                    "counting what it changed", _LOOK_S, lambda: extent(open_worktree(private_of(session)))
                )
                session.extent.found_of = of
        session.touch()


def countable(session: Session) -> bool:
    """It has a worktree that may be looked at, and did something in it, or ended: forks have work that others did."""
    state = session.state
    made = session.loaded and state.created is not None and (state.tool_calls > 0 or state.terminal)
    return made and not session.foreign and not session.damaged and not session.removing


def due(session: Session, now: float) -> bool:
    """It rests, or was not counted for a while; never while something else has it. ``now`` is monotonic."""
    if session.lock.locked() or session.doing_calls:
        return False
    rests = session.state.terminal or session.thinking.brain is None
    return rests or now - session.extent.at >= _AGAIN_S
