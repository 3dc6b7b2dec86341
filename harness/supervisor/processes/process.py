"""End of a process that is not necessarily our child, and privacy of our own."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import os
import signal
from collections.abc import Callable

from harness.session.proc import Identity, Look, alive, boot_id, identify, look

_PR_SET_DUMPABLE = 4

__all__ = ["Identity", "Look", "Watch", "alive", "boot_id", "end", "hide_from_ptrace", "identify", "look"]


def hide_from_ptrace() -> None:
    """PR_SET_DUMPABLE 0: same-user processes can read neither our memory nor our descriptors."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_DUMPABLE) failed")


class Watch:
    """Calls back once when a process ends, whoever its parent is. Must be made on the running loop."""

    def __init__(self, who: Identity, ended: Callable[[], None]) -> None:
        """Raises ProcessLookupError when that process is gone already."""
        self.who = who
        self._ended = ended
        self._loop = asyncio.get_running_loop()
        self._fd = os.pidfd_open(who.pid)
        if not alive(who):
            os.close(self._fd)
            self._fd = -1
            raise ProcessLookupError(f"process {who.pid} is gone")
        self._loop.add_reader(self._fd, self._fire)

    def _fire(self) -> None:
        self.close()
        self._ended()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to exactly this process; nothing happens when it is gone."""
        if self._fd >= 0:
            try:
                signal.pidfd_send_signal(self._fd, number)
            except ProcessLookupError:
                return

    def close(self) -> None:
        """Stop watching. Safe to call twice."""
        if self._fd >= 0:
            self._loop.remove_reader(self._fd)
            os.close(self._fd)
            self._fd = -1


async def end(who: Identity, *steps: tuple[signal.Signals | None, float]) -> bool:
    """End a process that need not be our child: each step sends its signal (None: none) and waits that many seconds.

    True when it is gone.
    """
    gone = asyncio.Event()
    try:
        watch = Watch(who, gone.set)
    except ProcessLookupError:
        return True
    try:
        for number, patience in steps:
            if number is not None:
                watch.signal(number)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(gone.wait(), patience)
            if gone.is_set():
                return True
        return False
    finally:
        watch.close()
