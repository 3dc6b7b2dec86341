"""Whether branches still hold what was merged into them: no log tells of what a person takes back in a terminal."""

from __future__ import annotations

import asyncio
import functools
import math
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from harness.supervisor.base.threads import StandsStill, Threads
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.fleet.session import Session
from harness.workspace.merge.still_merged import stands, tips

_PAUSE_S = 10.0
_UNSEEN_S = 60.0
"""Seconds between two looks while no screen is watched: the command line lists sessions too."""
_LOOK_S = 20.0


class MergedWatch:
    """Keeps `Session.lost_merge` of merged sessions true enough to look at."""

    def __init__(self, fleet: Fleet, looked_at: Callable[[], bool]) -> None:
        self._fleet = fleet
        self._looked_at = looked_at
        self._seen: dict[str, tuple[str, str]] = {}
        self._eyes = Threads("merged work", 1)

    async def run(self) -> None:
        """Look, until cancelled."""
        looked = -math.inf
        while True:
            if self._looked_at() or time.monotonic() - looked >= _UNSEEN_S:
                await self.look()
                looked = time.monotonic()
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
