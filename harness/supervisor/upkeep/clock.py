"""Notices that time went on without us: the machine slept, or its clock was set.

Whoever waits for an hour of the day looks again then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import NamedTuple

LEAST_S = 5.0
"""A smaller jump moves nothing that anybody waits for."""
_PAUSE_S = 2.0


class Ticks(NamedTuple):
    """Seconds by three clocks: of the wall, since boot, and since boot without sleep."""

    wall: float
    boot: float
    awake: float


class Gap(NamedTuple):
    """Seconds the machine slept, and seconds its wall clock was set forward (or back, when negative)."""

    slept: float
    moved: float


def read() -> Ticks:
    return Ticks(time.time(), time.clock_gettime(time.CLOCK_BOOTTIME), time.monotonic())


def gap(before: Ticks, now: Ticks) -> Gap | None:
    """What happened to time between two readings; None when nothing that matters did."""
    slept = (now.boot - before.boot) - (now.awake - before.awake)
    moved = (now.wall - before.wall) - (now.boot - before.boot)
    found = Gap(slept if slept > LEAST_S else 0.0, moved if abs(moved) > LEAST_S else 0.0)
    return found if found.slept or found.moved else None


def words(g: Gap) -> str:
    """What happened, for the supervisor's log and for the sessions'."""
    told = [f"the machine slept for {g.slept:.0f} s"] if g.slept else []
    if g.moved:
        told.append(f"the clock was set {'forward' if g.moved > 0 else 'back'} by {abs(g.moved):.0f} s")
    return " and ".join(told)


async def follow(jumped: Callable[[Gap], None], clocks: Callable[[], Ticks] = read, pause: float = _PAUSE_S) -> None:
    """Call ``jumped`` after each gap, until cancelled."""
    before = clocks()
    while True:
        await asyncio.sleep(pause)
        now = clocks()
        if (found := gap(before, now)) is not None:
            jumped(found)
        before = now
