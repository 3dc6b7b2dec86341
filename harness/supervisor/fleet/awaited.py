"""Who waits for a record of one session's log, or for what a record brings about; all of them learn of a lost link."""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import Callable

from harness.supervisor.base.errors import LinkLost

WAIT_S = 15.0


class Awaited:
    """Those who wait, on the loop that everything here runs on."""

    def __init__(self) -> None:
        self._records: list[tuple[int, int, asyncio.Future[None]]] = []
        self._conditions: list[tuple[Callable[[], bool], asyncio.Future[None]]] = []
        self._order = itertools.count()

    def came(self, seq: int) -> None:
        """The fold stands at ``seq`` now."""
        while self._records and self._records[0][0] <= seq:
            future = heapq.heappop(self._records)[2]
            if not future.done():
                future.set_result(None)
        for condition, future in self._conditions:
            if not future.done() and condition():
                future.set_result(None)

    def lost(self, why: str) -> None:
        """No record comes any more."""
        for future in (*(r[2] for r in self._records), *(c[1] for c in self._conditions)):
            if not future.done():
                future.set_exception(LinkLost(why))
        self._records.clear()

    async def record(self, seq: int) -> None:
        """Wait until `came` names it or a later one. Raises LinkLost, TimeoutError."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._records, (seq, next(self._order), future))
        async with asyncio.timeout(WAIT_S):
            await future

    async def condition(self, holds: Callable[[], bool], wait: float) -> None:
        """Wait until ``holds`` says yes after some record. Raises LinkLost, TimeoutError."""
        entry = (holds, asyncio.get_running_loop().create_future())
        self._conditions.append(entry)
        try:
            async with asyncio.timeout(wait):
                await entry[1]
        finally:
            self._conditions.remove(entry)
