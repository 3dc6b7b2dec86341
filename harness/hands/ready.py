"""The fence that stands ready for a session's next call, so that no call waits while one is built. Standard library
only.

Calls that only read (our own tools, which run nobody's program) share it; any other call takes it and ends it. One that
is not exactly what the next call asks for, to the inode of every folder that it shows, is never used.
"""

from __future__ import annotations

import os
import signal
from typing import NamedTuple

from harness.hands import joined

_BINDS = ("--bind", "--ro-bind", "--ro-bind-try")

Key = tuple[tuple[str, ...], tuple[tuple[int, int], ...]]


class _Standing(NamedTuple):
    key: Key
    fence: joined.Fence


class Ready:
    """One session's; belongs to the process that starts its calls, which must not collect the child ``pid`` (the one
    that holds the fence, 0 when none stands).
    """

    def __init__(self) -> None:
        self._standing: _Standing | None = None
        self._tickets = 0

    @property
    def pid(self) -> int:
        return self._standing.fence.builder if self._standing is not None else 0

    def prepare(self, argv: list[str]) -> None:
        """Have the fence of this command line stand, unless it does. Raises OSError."""
        key = _key(argv)
        if self._standing is not None and (self._standing.key != key or not self._tickets or self._ended()):
            self.drop()
        if self._standing is None:
            self._standing = _Standing(key, joined.build(argv))
            self._tickets = joined.TICKETS

    def lend(self, argv: list[str]) -> joined.Fence:
        """The fence of this command line for one more reader; it stays ours. Raises OSError."""
        self.prepare(argv)
        assert self._standing is not None
        self._tickets -= 1
        return self._standing.fence

    def give(self, argv: list[str]) -> joined.Fence:
        """The fence of this command line for good; close it once the call has started. Raises OSError."""
        fence = self.lend(argv)
        self._standing = None
        return fence

    def drop(self) -> int:
        """End the fence that stands, if any: a reader in it ends too. Returns the child of ours to collect, or 0."""
        if self._standing is None:
            return 0
        fence = self._standing.fence
        self._standing = None
        if fence.stands():  # one that is killed while it is built leaves its first process behind, waiting for nobody
            os.kill(fence.builder, signal.SIGKILL)  # nobody has collected it, so the number is its own
        fence.close()
        return fence.builder

    def _ended(self) -> bool:
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def _key(argv: list[str]) -> Key:
    sources = [argv[at + 1] for at, word in enumerate(argv) if word in _BINDS]
    return tuple(argv), tuple(_identity(path) for path in sources)


def _identity(path: str) -> tuple[int, int]:
    try:
        info = os.stat(path)
    except OSError:
        return 0, 0
    return info.st_dev, info.st_ino
