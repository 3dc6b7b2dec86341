"""A sandbox that stands ready for the next call, for as long as it may be wanted. Standard library only."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Mapping

from harness.domain.actions.access import Access, asked
from harness.domain.decision import Ruling
from harness.executor.warm_sandbox import Ready
from harness.keeper.loop.event_loop import Loop
from harness.keeper.loop.timers import Timer
from harness.tools import registry

_COLLECT_S = 0.1
_READY_S = 60.0
"""Seconds for which a sandbox stands ready after a call."""


class Standby:
    """The one sandbox that stands by; ``idle`` says whether no call runs or waits."""

    def __init__(self, loop: Loop, idle: Callable[[], bool]) -> None:
        self._loop = loop
        self._idle = idle
        self._dismiss: Timer | None = None
        self.ready = Ready()

    def enter(self) -> None:
        """A call will be asked for in a moment: have its place in the sandbox wait for it."""
        try:
            self.ready.enter()
        except OSError as exc:
            print(f"keeper: no place waits for the next call: {exc}", file=sys.stderr, flush=True)

    def keep(self, sandbox: list[str]) -> None:
        """The next call will most likely ask for the same sandbox: have it stand by, and not for longer than it may be
        wanted.
        """
        try:
            if not self.ready.pid:  # else the next call says whether it fits
                self.ready.prepare(sandbox)
        except OSError as exc:
            print(f"keeper: no sandbox stands ready for the next call: {exc}", file=sys.stderr, flush=True)
        if self._dismiss is not None:
            self._dismiss.cancel()
        self._dismiss = self._loop.call_later(_READY_S, self._put_away)

    def _put_away(self) -> None:
        if self._idle():
            for child in self.ready.drop():
                self._collect(child)

    def _collect(self, child: int) -> None:
        """Leave no dead child behind while nothing runs, whose end would collect it."""
        if not self._idle():
            return
        with contextlib.suppress(ChildProcessError):  # the end of a call meanwhile collected it
            if os.waitid(os.P_PID, child, os.WEXITED | os.WNOHANG) is None:
                self._loop.call_later(_COLLECT_S, lambda: self._collect(child))


def leads_to_the_sandbox(kind: str, data: Mapping[str, object]) -> bool:
    """A call that may run was judged, or one is proposed that most likely may: what contains itself is not asked
    about.
    """
    if kind == "tool.judged":
        return data.get("verdict") == Ruling.ALLOW
    given = data.get("input")
    inside = not isinstance(given, dict) or asked(given) == Access.SANDBOX
    return kind == "tool.proposed" and inside and registry.starts_process(str(data.get("tool")))
