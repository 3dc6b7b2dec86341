"""Whether branches still hold what was merged into them: no log tells of what a person takes back in a terminal."""

from __future__ import annotations

import asyncio
import functools
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.fleet.session import Session
from harness.supervisor.threads import StandsStill, Threads
from harness.workspace.standing import stands, tips

_PAUSE_S = 10.0
_LOOK_S = 20.0


class MergedWatch:
    """Keeps `Session.taken_back` of merged sessions true enough to look at; while nobody looks, nothing is asked."""

    def __init__(self, fleet: Fleet, looked_at: Callable[[], bool]) -> None:
        self._fleet = fleet
        self._looked_at = looked_at
        self._seen: dict[str, tuple[str, str]] = {}
        self._eyes = Threads("merged work", 1)

    async def run(self) -> None:
        """Look, until cancelled."""
        while True:
            if self._looked_at():
                await self.look()
            await asyncio.sleep(_PAUSE_S)

    async def look(self) -> None:
        """Look once at each repository that merged work lies in."""
        by_repository: defaultdict[str, list[Session]] = defaultdict(list)
        for session in self._fleet:
            if session.merged is not None:
                by_repository[session.merged.repo].append(session)
        for repo, sessions in by_repository.items():
            try:
                await self._compare(Path(repo), sessions)
            except StandsStill:
                continue  # a disk that does not answer: the next look asks again

    async def _compare(self, repo: Path, sessions: list[Session]) -> None:
        known = await self._eyes.run("reading where branches stand", _LOOK_S, lambda: tips(repo))
        for session in sessions:
            merged = session.merged
            tip = known.get(merged.into, "") if merged is not None else ""
            if merged is None or not tip or self._seen.get(session.sid) == (merged.commit, tip):
                continue
            asked = functools.partial(stands, repo, merged.commit, tip)
            still = await self._eyes.run("looking for merged work", _LOOK_S, asked)
            self._seen[session.sid] = (merged.commit, tip)
            session.merge_stands(merged.commit, still)
