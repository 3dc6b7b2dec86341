"""The keeper's side of the vault: start its process when it is needed, ask, and get the answer as an event. Standard library only."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import traceback
from collections import deque
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any, NoReturn

from harness.protocol import frames
from harness.protocol.paths import SessionFolder
from harness.session.loop import Loop, Timer
from harness.vault.limits import Limits
from harness.vault.serve import serve

TIME_LIMIT_S = 300.0
Answer = Callable[[dict[str, Any]], None]
_GONE = {"code": "died", "message": "the process that keeps states of the worktree ended"}
_SLOW = {"code": "timeout", "message": f"keeping the worktree's state took longer than {TIME_LIMIT_S:.0f} s"}


class VaultLink:
    """Asks the vault of one session, one request at a time; a request that its process did not survive is asked once more."""

    def __init__(self, loop: Loop, folder: SessionFolder) -> None:
        self._loop, self._folder = loop, folder
        self._sock: socket.socket | None = None
        self._decoder = frames.Decoder()
        self._waiting: tuple[dict[str, Any], Answer, int] | None = None
        self._queue: deque[tuple[dict[str, Any], Answer]] = deque()
        self._timer: Timer | None = None
        self.limits: Limits | None = None
        """What snapshots from now on may hold; None = as the last time."""
        self.pid = 0
        """Its process, or 0; a child of ours that is no tool."""

    def ask(self, request: dict[str, Any], answer: Answer) -> None:
        """Send a request when those before it are answered; ``answer`` gets ``{ok: true, …}`` or ``{ok: false, error}`` later,
        never from inside this call."""
        if self._waiting is None:
            self._send(request, answer, 2)
        else:
            self._queue.append((request, answer))

    def _send(self, request: dict[str, Any], answer: Answer, tries: int) -> None:
        self._waiting = (request, answer, tries)
        self._timer = self._loop.call_later(TIME_LIMIT_S, self._late)
        try:
            if self._sock is None:
                self._start()
            assert self._sock is not None
            self._sock.sendall(frames.encode({"id": 1, "limits": asdict(self.limits) if self.limits is not None else None, **request}))
        except OSError as exc:
            error = {"code": "io", "message": f"the vault cannot be started: {exc.strerror}"}
            self._loop.call_later(0, lambda: self._answered({"ok": False, "error": error}))

    def roots(self, action: dict[str, Any] | None = None) -> list[list[object]]:
        """The folders of the session as the vault wants them: the worktree, the private git folder, its objects."""
        worktree = _worktree(action) if action is not None else ""
        worktree = worktree or _recorded(self._folder.git / "workspace.json")
        git = self._folder.git
        listed: list[list[object]] = [["w", worktree, [".git"]]]
        return listed + [[letter, str(git / name), []] for letter, name in (("g", "private"), ("o", "objects")) if (git / name).is_dir()]

    def stop(self) -> None:
        """End its process; nobody is answered any more."""
        self._waiting = None
        self._queue.clear()
        if self.pid:
            self._kill(_GONE)

    # -- its process -------------------------------------------------------------------------------------------------

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            _become(theirs, self._folder.vault)
        theirs.close()
        self.pid, self._sock, self._decoder = pid, ours, frames.Decoder()
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
        for body in self._decoder.feed(data):
            self._answered(frames.parse(body))

    def _answered(self, reply: dict[str, Any]) -> None:
        if self._waiting is None:
            return
        _, answer, _ = self._waiting
        self._waiting = None
        if self._timer is not None:
            self._timer.cancel()
        if self._queue:
            self._send(*self._queue.popleft(), 2)
        answer(reply)

    def _late(self) -> None:
        if self._waiting is not None:
            self._waiting = (*self._waiting[:2], 1)
            self._kill(_SLOW)

    def _kill(self, error: dict[str, str]) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)
        self._lost(error)

    def _lost(self, error: dict[str, str] = _GONE) -> None:
        if self._sock is not None:
            self._loop.unwatch(self._sock.fileno())
            self._sock.close()
            self._sock = None
        if self.pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)
            self.pid = 0
        if self._waiting is None:
            return
        request, answer, tries = self._waiting
        if tries > 1:
            self._waiting = None
            if self._timer is not None:
                self._timer.cancel()
            self._send(request, answer, tries - 1)
        else:
            self._answered({"ok": False, "error": error})


def _become(sock: socket.socket, folder: Path) -> NoReturn:
    """In the child: keep nothing of the keeper but its memory and standard error."""
    try:
        os.setsid()
        fd = os.dup2(sock.fileno(), 3)
        os.closerange(4, os.sysconf("SC_OPEN_MAX"))
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, signal.SIG_DFL)
        os.environ.clear()
        serve(socket.socket(fileno=fd), folder)
    except BaseException:
        traceback.print_exc(file=sys.stderr)
        sys.stderr.flush()
    finally:
        os._exit(1)


def _worktree(action: dict[str, Any]) -> str:
    profile = action.get("fence") or {}
    return str(profile.get("worktree") or "")


def _recorded(file: Path) -> str:
    """The worktree's folder from the session's own record; empty when there is none yet."""
    try:
        value = json.loads(file.read_bytes())
    except (OSError, ValueError):
        return ""
    return str(value.get("root", "")) if isinstance(value, dict) else ""
