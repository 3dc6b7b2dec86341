"""The fence that stands ready for a session's next call, and the place in it that waits for a call which is about to
begin, so that no call waits while they are made. Standard library only.

Calls that only read (our own tools, which run nobody's program) share it; any other call takes it and ends it. One that
is not exactly what the next call asks for, to the inode of every folder that it shows, is never used.
"""

from __future__ import annotations

import os
import signal
from typing import NamedTuple

from harness.hands import joined, runner

_BINDS = ("--bind", "--ro-bind", "--ro-bind-try")

Key = tuple[tuple[str, ...], tuple[tuple[int, int], ...]]


class _Standing(NamedTuple):
    key: Key
    fence: joined.Fence
    place: joined.Warden | None


class Ready:
    """One session's; belongs to the process that starts its calls, which must not collect the children ``pids``."""

    def __init__(self, tickets: int = joined.TICKETS) -> None:
        """``tickets``: how many calls one fence takes at most."""
        self._standing: _Standing | None = None
        self._most = tickets
        self._tickets = 0

    @property
    def pid(self) -> int:
        """The child that holds the fence, 0 when none stands."""
        return self._standing.fence.builder if self._standing is not None else 0

    @property
    def pids(self) -> frozenset[int]:
        """The children of ours that stand ready; they are no call."""
        if self._standing is None:
            return frozenset()
        place = self._standing.place
        return frozenset((self._standing.fence.builder, *((place.pid,) if place is not None else ())))

    def prepare(self, argv: list[str]) -> None:
        """Have the fence of this command line stand, unless it does. Raises OSError."""
        key = _key(argv)
        if self._standing is not None and (self._standing.key != key or self._ended()):
            self.drop()
        if self._standing is None:
            self._standing = _Standing(key, joined.build(argv), None)
            self._tickets = self._most

    def enter(self) -> None:
        """Have a place wait in the fence that stands, if any: a call is about to begin.

        Not earlier, because the pages that we write from then on are copied. Raises OSError.
        """
        if self._standing is not None and self._standing.place is None:
            self._standing = self._standing._replace(place=joined.stand(self._standing.fence, runner.main))
            self._tickets -= 1

    def lend(self, argv: list[str]) -> joined.Warden:
        """A place in the fence of this command line for one more reader; the fence stays ours. Raises OSError."""
        self.prepare(argv)
        self.enter()
        assert self._standing is not None
        assert self._standing.place is not None
        place = self._standing.place
        self._standing = self._standing._replace(place=None)
        if not self._tickets:
            self._let_go()
        return place

    def give(self, argv: list[str]) -> joined.Warden:
        """The place in the fence of this command line, and the fence with it. Raises OSError."""
        place = self.lend(argv)
        self._let_go()
        return place

    def drop(self) -> frozenset[int]:
        """End the fence that stands, if any: a reader in it ends too. Returns the children of ours to collect."""
        if self._standing is None:
            return frozenset()
        _, fence, place = self._standing
        left = self.pids
        if fence.stands():  # one that is killed while it is built leaves its first process behind, waiting for nobody
            os.kill(fence.builder, signal.SIGKILL)  # nobody has collected it, so the number is its own
        if place is not None:
            place.channel.close()
        self._let_go()
        return left

    def _let_go(self) -> None:
        """The fence stands from now on only as long as somebody is in it."""
        if self._standing is not None:
            self._standing.fence.close()
            self._standing = None

    def _ended(self) -> bool:
        return any(os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None for pid in self.pids)


def _key(argv: list[str]) -> Key:
    sources = [argv[at + 1] for at, word in enumerate(argv) if word in _BINDS]
    return tuple(argv), tuple(_identity(path) for path in sources)


def _identity(path: str) -> tuple[int, int]:
    try:
        info = os.stat(path)
    except OSError:
        return 0, 0
    return info.st_dev, info.st_ino
