"""The sandbox that stands ready for a session's next calls, and the place in it that waits for a call which is about to
begin, so that no call waits while they are made. Standard library only.

Every call has a place of its own, so whatever ran before leaves nothing there. A sandbox that is not exactly what the
next call asks for, to the inode of every folder that it shows, is never used.
"""

from __future__ import annotations

import contextlib
import os
import signal
import stat
from typing import NamedTuple

from harness.executor import runner
from harness.sandbox import namespace_clone

_BINDS = ("--bind", "--ro-bind", "--ro-bind-try")

Key = tuple[tuple[str, ...], tuple[tuple[int, int, int], ...]]


class _Standing(NamedTuple):
    key: Key
    sandbox: namespace_clone.Sandbox
    place: namespace_clone.Place | None


class Ready:
    """One session's; belongs to the process that starts its calls, which must not collect the children ``pids``."""

    def __init__(self) -> None:
        self._standing: _Standing | None = None

    @property
    def pid(self) -> int:
        """The child that holds the sandbox, 0 when none stands."""
        return self._standing.sandbox.pid if self._standing is not None else 0

    @property
    def pids(self) -> frozenset[int]:
        """The children of ours that stand ready; they are no call."""
        found = {self.pid} if self.pid else set()
        if self._standing is not None and self._standing.place is not None:
            with contextlib.suppress(OSError):  # the sandbox ended before it was made
                found.add(self._standing.place.pid())
        return frozenset(found)

    def prepare(self, argv: list[str]) -> None:
        """Have the sandbox of this command line stand, unless it does. Raises OSError."""
        key = _key(argv)
        if self._standing is not None and (self._standing.key != key or self._ended()):
            self.drop()
        if self._standing is None:
            self._standing = _Standing(key, namespace_clone.build(argv, runner.main), None)

    def enter(self) -> None:
        """Have a place wait in the sandbox that stands, if any: a call is about to begin. Raises OSError."""
        if self._standing is not None and self._standing.place is None:
            self._standing = self._standing._replace(place=self._standing.sandbox.place())

    def take(self, argv: list[str]) -> namespace_clone.Place:
        """A place in the sandbox of this command line for one call. Raises OSError."""
        self.prepare(argv)
        self.enter()
        assert self._standing is not None
        assert self._standing.place is not None
        place = self._standing.place
        self._standing = self._standing._replace(place=None)
        return place

    def drop(self) -> frozenset[int]:
        """End the sandbox that stands, if any, but no call in it. Returns the children of ours to collect."""
        left = self.pids
        for pid in left:
            os.kill(pid, signal.SIGKILL)  # nobody has collected it, so the number is its own
        if self._standing is not None:
            self._standing.sandbox.channel.close()
            if self._standing.place is not None:
                self._standing.place.channel.close()
            self._standing = None
        return left

    def _ended(self) -> bool:
        return any(os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None for pid in self.pids)


def _key(argv: list[str]) -> Key:
    shown = {path: None for at, word in enumerate(argv) if word in _BINDS for path in argv[at + 1 : at + 3]}
    return tuple(argv), tuple(_identity(path) for path in shown)


def _identity(path: str) -> tuple[int, int, int]:
    """Which folder it is; of a file, which may be copied into the sandbox, also when it was changed."""
    try:
        info = os.stat(path)
    except OSError:
        return 0, 0, 0
    return info.st_dev, info.st_ino, 0 if stat.S_ISDIR(info.st_mode) else info.st_mtime_ns
