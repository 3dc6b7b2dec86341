"""Work that goes on for the supervisor's whole life.

A piece of it that dies is said and begun again; one that keeps dying ends the supervisor.
"""

from __future__ import annotations

import asyncio
import sys
import time
import traceback
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime

from harness.linux.scarce import scarce
from harness.supervisor.fleet.subsystem_state import Restarts

_PAUSE_S = 2.0
_LACKS = 60
"""So often work waits for an open file, a process or memory; a supervisor that still has none is started anew."""
SHOWN_S = 600.0
"""Seconds that the floor shows a death after it was mended."""


class Upkeep:
    """``problems`` is where a death is shown, ``changed`` is called when that changes, ``give_up`` when a piece died
    three times in a minute.
    """

    def __init__(self, problems: dict[str, str], changed: Callable[[], None], give_up: Callable[[], None]) -> None:
        self._problems = problems
        self._changed = changed
        self._give_up = give_up
        self._tasks: set[asyncio.Task[None]] = set()

    def keep(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run ``work`` for ever: it is begun again when it ends or fails. ``what`` names it for people."""
        self._add(self._kept(what, work))

    def finish(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run ``work`` until it has ended once: it is begun again when it fails."""
        self._add(self._kept(what, work, ends=True))

    def once(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        """Run ``work`` to its end; a failure is said, and nothing depends on it."""
        self._add(self._said(what, work))

    def _add(self, work: Awaitable[None]) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def close(self) -> None:
        """End all of it; returns when nothing runs any more."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _kept(self, what: str, work: Callable[[], Awaitable[None]], *, ends: bool = False) -> None:
        falls = Restarts()
        lacking = Restarts(limit=_LACKS, window=_LACKS * 2 * _PAUSE_S)
        while True:
            fell = await self._fallen(work)
            if ends and fell is None:
                return
            why = f"{type(fell).__name__}: {fell}" if fell is not None else "it ended"
            if scarce(fell) and not lacking.add(time.monotonic()):
                print(f"supervisor: {what} waits ({why})", file=sys.stderr, flush=True)
                await asyncio.sleep(_PAUSE_S)
                continue
            if falls.add(time.monotonic()):
                print(
                    f"supervisor: {what} failed {falls.limit} times within a minute ({why}); the supervisor leaves and"
                    " is started anew",
                    file=sys.stderr,
                    flush=True,
                )
                self._give_up()
                return
            self._tell(what, why)
            await asyncio.sleep(falls.backoff())

    @staticmethod
    async def _fallen(work: Callable[[], Awaitable[None]]) -> Exception | None:
        try:
            await work()
        except Exception as exc:
            if not scarce(exc):
                traceback.print_exc(file=sys.stderr)
            return exc
        return None

    async def _said(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except Exception as exc:
            traceback.print_exc(file=sys.stderr)
            print(f"supervisor: {what}: {type(exc).__name__}: {exc}", file=sys.stderr, flush=True)

    def _tell(self, what: str, why: str) -> None:
        print(f"supervisor: {what} failed ({why}) and is begun again", file=sys.stderr, flush=True)
        self._problems[what] = (
            f"a defect of Watchfloor: {what} failed at {datetime.now(UTC):%H:%M:%S} UTC ({why}) and was begun again;"
            " nothing is lost"
        )
        self._changed()
        asyncio.get_running_loop().call_later(SHOWN_S, self._forget, what, self._problems[what])

    def _forget(self, what: str, told: str) -> None:
        if self._problems.get(what) == told:
            del self._problems[what]
            self._changed()
