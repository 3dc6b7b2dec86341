"""The sign that a supervisor's loop turns, by which its guardian knows one that hangs. Standard library only.

Time is counted in looks of the guardian, so that none is held against a supervisor while nobody looked: not a machine
that slept, nor one on which both stood still.
"""

from __future__ import annotations

import asyncio
import contextlib
import os

from harness.linux.proc import Look, identify, look

EVERY_S = 2.0
"""Seconds between two signs."""
LOOK_S = 5.0
"""Seconds between two looks for them."""
IDLE_S = 30.0
"""Seconds without a sign in which a supervisor did nothing at all, after which it hangs."""
STOPPED_S = 60.0
"""Seconds for which somebody may stop it (SIGSTOP, a debugger)."""
SILENT_S = 300.0
"""Seconds without a sign after which one that is at work hangs as well."""


def give(fd: int) -> None:
    """One sign; ``fd`` is negative for a supervisor that nobody watches."""
    if fd >= 0:
        with contextlib.suppress(OSError):
            os.eventfd_write(fd, 1)


async def keep_giving(fd: int) -> None:
    """A sign every few seconds for as long as the loop turns, until cancelled."""
    while True:
        give(fd)
        await asyncio.sleep(EVERY_S)


class Watched:
    """A supervisor as its guardian sees it, from its start on."""

    def __init__(self, pid: int, fd: int) -> None:
        self._fd = fd
        self._who = identify(pid)
        self._seen: Look | None = None
        self._silent_s = 0.0
        self._idle_s = 0.0
        self._heard()

    def _heard(self) -> bool:
        try:
            os.eventfd_read(self._fd)
        except BlockingIOError:
            return False
        return True

    def hangs(self) -> str:
        """Look once, ``LOOK_S`` after the last time: in words why it is to be ended, empty while it is not.

        One that a disk holds is left to it: no signal reaches it, and another one would wait there too.
        """
        seen = look(self._who) if self._who is not None else None
        before = self._seen
        self._seen = seen
        if self._heard() or seen is None or seen.state == "D":
            self._begin_anew()
            return ""
        self._silent_s += LOOK_S
        self._idle_s = self._idle_s + LOOK_S if seen == before else 0.0
        if self._idle_s < (STOPPED_S if seen.stopped else IDLE_S) and self._silent_s < SILENT_S:
            return ""
        how = "was stopped" if seen.stopped else "gave no sign of life"
        told = f"{how} for {self._silent_s:.0f} s"
        self._begin_anew()
        return told

    def _begin_anew(self) -> None:
        self._silent_s = 0.0
        self._idle_s = 0.0
