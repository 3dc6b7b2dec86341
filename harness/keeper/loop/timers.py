"""Turns over descriptors and timers, in one thread: what a keeper and the process beside a job have in common.

Standard library only.
"""

from __future__ import annotations

import heapq
import itertools
import selectors
import time
from collections.abc import Callable

_CROWDED = 32  # pending calls above which those that were cancelled are thrown out


class Timer:
    """A pending call; ``cancel`` makes it never happen and lets go of all that it would have needed."""

    __slots__ = ("run",)

    def __init__(self, run: Callable[[], None]) -> None:
        self.run: Callable[[], None] | None = run

    def cancel(self) -> None:
        self.run = None


class Turns:
    """Calls what is due, until ``stopping``. Time is that which the machine was awake, however its clock is set."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._timers: list[tuple[float, int, Timer]] = []
        self._order = itertools.count()
        self._crowded = _CROWDED
        self.stopping = False

    def call_later(self, seconds: float, run: Callable[[], None]) -> Timer:
        if len(self._timers) >= self._crowded:
            self._timers = [item for item in self._timers if item[2].run is not None]
            heapq.heapify(self._timers)
            self._crowded = max(_CROWDED, 2 * len(self._timers))
        timer = Timer(run)
        heapq.heappush(self._timers, (time.monotonic() + seconds, next(self._order), timer))
        return timer

    def watch(self, fd: int, run: Callable[[], None]) -> None:
        """Call ``run`` whenever ``fd`` is readable."""
        self._selector.register(fd, selectors.EVENT_READ, lambda _mask: run())

    def unwatch(self, fd: int) -> None:
        self._selector.unregister(fd)

    def run(self) -> None:
        """Serve until ``stopping``."""
        while not self.stopping:
            self._turn(wait=True)

    def _turn(self, *, wait: bool) -> None:
        """Handle what is ready, then the timers that are due."""
        watched = self._selector.get_map()
        for key, mask in self._selector.select(self._timeout() if wait else 0):
            if watched.get(key.fd) is key:  # not when what ran before it has just let go of it
                key.data(mask)
        self._run_timers()

    def _timeout(self) -> float | None:
        while self._timers and self._timers[0][2].run is None:
            heapq.heappop(self._timers)
        return max(0.0, self._timers[0][0] - time.monotonic()) if self._timers else None

    def _run_timers(self) -> None:
        now = time.monotonic()
        while self._timers and self._timers[0][0] <= now:
            timer = heapq.heappop(self._timers)[2]
            if timer.run is not None:
                timer.run()
