"""The end of a process that is not necessarily our child."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable

from harness.linux.proc import Identity, alive


class Watch:
    """Calls back once when a process ends, whoever its parent is. Must be made on the running loop."""

    def __init__(self, who: Identity, ended: Callable[[], None]) -> None:
        """Raises ProcessLookupError when that process is gone already."""
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
                async with asyncio.timeout(patience):
                    await gone.wait()
            if gone.is_set():
                return True
        return False
    finally:
        watch.close()
