"""The keeper's side of watching calls (`harness.keeper.calls.watch`): a watcher is forked when a call first runs for
longer, and stays for the next one, since a fork costs its keeper more than all looks at an ordinary call. Standard
library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable

from harness.executor.spawn import Spawn
from harness.keeper.calls import watch
from harness.keeper.calls.watch import KnownDisk, WatchOrder
from harness.keeper.loop import child
from harness.keeper.loop.timers import Timer, Turns
from harness.protocol.connection.op import reader
from harness.sandbox.disk_usage import Known
from harness.sandbox.limits import Over

_STAYS_S = 60.0
"""Seconds for which a watcher waits for another call."""
_PATIENCE_S = 1.0
"""Seconds that one may take to let go of a call that is over, before it is ended."""
_COLLECT_S = 0.05
_MESSAGE = 1 << 16
_over = reader(Over)
Heard = Callable[[str, Over], None]


class Watchers:
    """Those of one session: each watches one call at a time, and at most one waits."""

    def __init__(self, loop: Turns, disk: KnownDisk) -> None:
        self._loop = loop
        self._disk = disk
        self._waiting: Watcher | None = None
        self._put_away: Timer | None = None
        self._pids: set[int] = set()

    @property
    def known(self) -> Known | None:
        """What is known of the session's disk use."""
        return self._disk.known

    @property
    def pids(self) -> frozenset[int]:
        """Children that are no call's, until they were collected."""
        return frozenset(self._pids)

    def begin(self, spec: Spawn, leader: int, heard: Heard) -> Watcher:
        """Have a call watched; ``heard`` gets what is found (``full``, ``over``). Raises OSError."""
        group = str(spec.group.path) if spec.group is not None else ""
        order = WatchOrder(leader, spec.sandboxed, spec.limits, spec.grows, group, self._disk.known).encode()
        if (watcher := self._waiting) is not None:
            self._waiting = None
            with contextlib.suppress(OSError):  # it died, which nobody heard yet
                watcher.begin(order, heard)
                return watcher
            watcher.kill()
        watcher = Watcher(self._loop, self._disk, self._freed, self._gone)
        self._pids.add(watcher.pid)
        watcher.begin(order, heard)
        return watcher

    def _freed(self, watcher: Watcher) -> None:
        """It let go of its call: it waits for another one, unless one does already."""
        if self._waiting is not None:
            watcher.kill()
            return
        self._waiting = watcher
        if self._put_away is not None:
            self._put_away.cancel()
        self._put_away = self._loop.call_later(_STAYS_S, self._end)

    def _end(self) -> None:
        if self._waiting is not None:
            self._waiting.kill()

    def _gone(self, watcher: Watcher) -> None:
        if self._waiting is watcher:
            self._waiting = None
        self._collect(watcher.pid)

    def _collect(self, pid: int) -> None:
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG) == (0, 0):
                self._loop.call_later(_COLLECT_S, lambda: self._collect(pid))
                return
        self._pids.discard(pid)


class Watcher:
    """One child; it has a call from `begin` until it let go of it, or is gone."""

    def __init__(
        self, loop: Turns, disk: KnownDisk, freed: Callable[[Watcher], None], gone: Callable[[Watcher], None]
    ) -> None:
        """Raises OSError."""
        self._loop = loop
        self._disk = disk
        self._freed = freed
        self._gone = gone
        self._heard: Heard | None = None
        self._let_go: Callable[[], None] | None = None
        self._late: Timer | None = None
        self.pid, self._line = child.begin("watch of calls", watch.serve)
        self._line.setblocking(False)
        loop.watch(self._line.fileno(), self._said)

    def begin(self, order: bytes, heard: Heard) -> None:
        """Watch this call. Raises OSError."""
        self._line.send(order)
        self._heard = heard

    def end(self, let_go: Callable[[], None]) -> None:
        """The call is over; ``let_go`` is called once nothing of it is held here, perhaps at once."""
        self._heard = None
        self._let_go = let_go
        if self._line.fileno() < 0:
            self._released()
            return
        try:
            self._line.send(watch.OVER)
        except OSError:
            self.kill()
            return
        self._late = self._loop.call_later(_PATIENCE_S, self.kill)

    def kill(self) -> None:
        """End it, whatever it does."""
        if self._line.fileno() < 0:
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._lost()

    def _said(self) -> None:
        try:
            data = self._line.recv(_MESSAGE)
        except BlockingIOError:
            return
        except OSError:  # it died over an order
            data = b""
        if not data:
            self._lost()
            return
        for what, value in json.loads(data).items():
            if what == "known":
                self._disk.take(value)
            elif what == "let_go":
                self._freed(self)
                self._released()
            elif self._heard is not None:
                self._heard(what, _over(value))

    def _lost(self) -> None:
        self._loop.unwatch(self._line.fileno())
        self._line.close()
        self._gone(self)
        self._released()

    def _released(self) -> None:
        if self._late is not None:
            self._late.cancel()
            self._late = None
        let_go = self._let_go
        self._let_go = None
        if let_go is not None:
            let_go()
