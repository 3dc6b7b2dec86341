"""The keeper's side of the vault: start its process when it is needed, ask, and get the answer as an event.

Standard library only.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple, NoReturn, TypeVar, cast

from harness.domain.actions.action import Action
from harness.keeper.loop.event_loop import Loop
from harness.keeper.loop.timers import Timer
from harness.linux import proc
from harness.linux.scarce import scarce
from harness.protocol.connection.exchange import Exchange, Reply
from harness.protocol.connection.frames import members
from harness.protocol.connection.op import Op, reader
from harness.protocol.paths import SessionFolder
from harness.vault.limits import VaultLimits
from harness.vault.serve import serve
from harness.vault.vault_ops import BringBack, Export, KeptRoot, ListStates, Observe, Take, VaultFailure

TIME_LIMIT_S = 300.0
LOOK_S = 1.0
"""Seconds between two looks at its process while an answer is awaited."""
_COLLECT_S = 0.02
_END_S = 1.0
STOPPED_S = 5.0
"""Seconds that its process may be stopped before another one takes its place."""
STILL_S = 60.0
"""Seconds that its process may do nothing at all before another one takes its place."""
_SAID_S = 10.0
R = TypeVar("R")
_GONE = VaultFailure("died", "the process that keeps states of the worktree ended")
_STILL = VaultFailure(
    "timeout", "the process that keeps states of the worktree stood still, and so did the one after it"
)
_SLOW = VaultFailure("timeout", f"keeping the worktree's state took longer than {TIME_LIMIT_S:.0f} s")
_OPS: tuple[type[Op[object]], ...] = (Take, Observe, Export, BringBack, ListStates)
_readers = {op: reader(op.answered_by()) for op in _OPS}
_failure = reader(VaultFailure)


class _Question(NamedTuple):
    """What is asked, who is told, and of how many processes it may be asked still."""

    op: Op[object]
    answer: Callable[[Mapping[str, object]], None]
    fail: Callable[[VaultFailure], None]
    tries: int = 2


class VaultLink:
    """Asks the vault of one session, one request at a time; a request that its process did not survive, or that it
    stood still over, is asked once more, of another one.
    """

    def __init__(self, loop: Loop, folder: SessionFolder) -> None:
        self._loop = loop
        self._folder = folder
        self._sock: socket.socket | None = None
        self._exchange = Exchange()
        self._waiting: _Question | None = None
        self._queue: deque[_Question] = deque()
        self._timer: Timer | None = None
        self._deadline = 0.0
        self._since = 0.0
        self._seen: proc.Look | None = None
        self._who: proc.Identity | None = None
        self.limits: VaultLimits | None = None
        """What snapshots from now on may hold; None = as the last time."""
        self.pid = 0
        """Its process, or 0; a child of ours that is no tool."""

    @property
    def waits(self) -> str:
        """For what in words, when an answer is awaited and nobody works on it; empty otherwise."""
        still = time.monotonic() - self._since
        if self._waiting is None or self._seen is None or still < (LOOK_S if self._seen.stopped else _SAID_S):
            return ""
        since = time.strftime("%H:%M:%S", time.gmtime(time.time() - still))
        how = "waits for its disk" if self._seen.state == "D" else "does nothing"
        if self._seen.stopped:
            how = "is stopped"
        return f"process {self.pid} {how} since {since} UTC"

    def ask(self, op: Op[R], answer: Callable[[R | VaultFailure], None]) -> None:
        """Send a request when those before it are answered; ``answer`` gets its reply later, never from inside this
        call.
        """
        question = _Question(op, lambda reply: answer(_read(op, reply)), answer)
        if self._waiting is None:
            self._take(question)
        else:
            self._queue.append(question)

    def _take(self, question: _Question) -> None:
        self._waiting = question
        self._deadline = time.monotonic() + TIME_LIMIT_S
        self._seen = None
        self._timer = self._loop.call_later(LOOK_S, self._look)
        if self._sock is not None or not self.pid:  # else it is sent when the one before is gone
            self._send(question.op)

    def _send(self, op: Op[object]) -> None:
        try:
            if self._sock is None:
                self._start()
            assert self._sock is not None
            _, frame = self._exchange.request(op.OP, {**members(op), "limits": self.limits})
            self._sock.sendall(frame)
        except OSError as exc:
            failure = VaultFailure("scarce" if scarce(exc) else "io", f"the vault cannot be started: {exc.strerror}")
            self._loop.call_later(0, lambda: self._failed(failure))

    def roots(self, action: Action | None = None) -> tuple[KeptRoot, ...]:
        """The folders of the session as the vault wants them: the worktree, the private git folder, its objects."""
        worktree = action.sandbox.worktree if action is not None else ""
        worktree = worktree or _recorded(self._folder.git / "workspace.json")
        git = self._folder.git
        own = (("g", git / "private"), ("o", git / "objects"))
        return (
            KeptRoot("w", worktree, (".git",)),
            *(KeptRoot(letter, str(place)) for letter, place in own if place.is_dir()),
        )

    def stop(self) -> None:
        """End its process; nobody is answered any more."""
        self._waiting = None
        self._queue.clear()
        if not self.pid:
            return
        self._kill(_GONE)
        end = time.monotonic() + _END_S
        while self.pid and time.monotonic() < end:  # one that a disk holds must not hold us too
            time.sleep(0.005)
            self._collect()

    # -- its process -------------------------------------------------------------------------------

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            _become(theirs, self._folder.vault)
        theirs.close()
        self.pid = pid
        self._sock = ours
        self._exchange = Exchange()
        self._who = proc.identify(pid)
        self._loop.watch(ours.fileno(), self._readable)

    def _readable(self) -> None:
        assert self._sock is not None
        try:
            data = self._sock.recv(1 << 16)
        except OSError:
            data = b""
        if not data:
            self._lost()
            return
        for message in self._exchange.take(data):
            if isinstance(message, Reply):
                self._answered(message.message)

    def _answered(self, reply: Mapping[str, object]) -> None:
        if (question := self._over()) is not None:
            question.answer(reply)

    def _failed(self, failure: VaultFailure) -> None:
        if (question := self._over()) is not None:
            question.fail(failure)

    def _over(self) -> _Question | None:
        """What was waited for is over, and the next is asked; None when nothing was."""
        question = self._waiting
        if question is None:
            return None
        self._waiting = None
        if self._timer is not None:
            self._timer.cancel()
        if self._queue:
            self._take(self._queue.popleft())
        return question

    def _look(self) -> None:
        """Every second while an answer is awaited: one that only has much to do is left to it, one that stands still is
        replaced.
        """
        if self._waiting is None:
            return
        self._timer = self._loop.call_later(LOOK_S, self._look)
        now = time.monotonic()
        seen = proc.look(self._who) if self._who is not None else None
        if seen != self._seen:
            self._seen = seen
            self._since = now
        if now > self._deadline:
            self._waiting = self._waiting._replace(tries=1)
            self._kill(_SLOW)
        elif (
            self._sock is not None and seen is not None and now - self._since > (STOPPED_S if seen.stopped else STILL_S)
        ):
            self._kill(_STILL)

    def _kill(self, why: VaultFailure) -> None:
        if self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        self._lost(why)

    def _lost(self, why: VaultFailure = _GONE) -> None:
        if self._sock is not None:
            self._loop.unwatch(self._sock.fileno())
            self._sock.close()
            self._sock = None
        if self._waiting is not None:
            left = self._waiting.tries - 1
            self._waiting = self._waiting._replace(tries=left)
            if not left:
                self._failed(why)
        self._collect()

    def _collect(self) -> None:
        """What waits is sent to another one when the old one is gone, since both would write the same files."""
        if self._sock is not None or not self.pid:
            return
        with contextlib.suppress(ChildProcessError):
            if os.waitpid(self.pid, os.WNOHANG) == (0, 0):
                self._loop.call_later(_COLLECT_S, self._collect)
                return
        self.pid = 0
        self._who = None
        if self._waiting is not None:
            self._send(self._waiting.op)


def _read(op: Op[R], reply: Mapping[str, object]) -> R | VaultFailure:
    if not reply.get("ok"):
        error = reply.get("error")
        return _failure(error if isinstance(error, dict) else {})
    return cast("R", _readers[type(op)](reply))


def _become(sock: socket.socket, folder: Path) -> NoReturn:
    """In the child: keep nothing of the keeper but its memory and standard error."""
    try:
        os.setsid()
        fd = os.dup2(sock.fileno(), 3)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        signal.set_wakeup_fd(-1)
        # a SIGTERM to everybody is the keeper's to answer, which needs this process for its last state
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGUSR1, signal.SIG_DFL)
        os.environ.clear()
        serve(socket.socket(fileno=fd), folder)
    except BaseException:
        traceback.print_exc(file=sys.stderr)
        sys.stderr.flush()
    finally:
        os._exit(1)


def _recorded(file: Path) -> str:
    """The worktree's folder from the session's own record; empty when there is none yet."""
    try:
        value = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return ""
    return str(value.get("root", "")) if isinstance(value, dict) else ""
