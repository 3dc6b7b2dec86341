"""The fork server of agents: a small process, exec'ed once, single-threaded, with all that its agents need loaded and
frozen.

It forks one agent for each request that comes over the inherited socket, reaps them and says so, and ends when the
socket ends (its agents live on). Keys come over the socket only.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import errno
import gc
import os
import resource
import select
import signal
import socket
import sys
import traceback
from typing import NoReturn

import msgspec

from harness.agents import agent_loop
from harness.agents.agent_spec import Spec
from harness.linux import kernel, proc
from harness.protocol.connection import frames


def harden() -> None:
    """No core dump, no other process of this user may read our memory: it holds the key."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    kernel.hide_memory()


class ForkServer:
    """Serves one socket until it ends."""

    def __init__(self, sock: socket.socket, make: agent_loop.Make) -> None:
        self._sock = sock
        self._make = make
        self._decoder = frames.Decoder()
        self._alarm, self._wake = socket.socketpair()
        self._alarm.setblocking(False)
        self._wake.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)

    def serve(self) -> None:
        """Returns at the end of the stream. Raises OSError, FrameError when the peer is no supervisor of ours."""
        while True:
            readable = select.select((self._sock, self._alarm), (), ())[0]
            if self._alarm in readable:
                with contextlib.suppress(BlockingIOError):
                    self._alarm.recv(4096)
            self._reap()
            if self._sock in readable:
                data = self._sock.recv(1 << 18)
                if not data:
                    return
                for body in self._decoder.feed(data):
                    self._handle(frames.parse(body))

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            self._send({"push": "exited", "pid": pid, "code": os.waitstatus_to_exitcode(status)})

    def _send(self, message: dict[str, object]) -> None:
        self._sock.sendall(frames.encode(message))

    def _handle(self, message: dict[str, object]) -> None:
        number = message.get("id")
        if message.get("op") != "spawn":
            self._send(
                {
                    "id": number,
                    "ok": False,
                    "error": {"code": "bad_op", "message": f"the fork server knows no op {message.get('op')!r}"},
                }
            )
            return
        try:
            spec = msgspec.convert(message.get("brain"), Spec)
            who = proc.holder(pid := self._fork(spec))
            if who is None:
                raise ProcessLookupError(errno.ESRCH, f"process {pid} is gone")
        except (msgspec.ValidationError, OSError) as exc:
            self._send(
                {"id": number, "ok": False, "error": {"code": "spawn", "message": f"no brain was forked: {exc}"}}
            )
            return
        self._send({"id": number, "ok": True, **who._asdict()})

    def _fork(self, spec: Spec) -> int:
        pid = os.fork()
        if pid == 0:
            self._child(spec)
        return pid

    def _child(self, spec: Spec) -> NoReturn:
        """Never returns: the parent's stack must not unwind twice."""
        code = agent_loop.DEFECT
        try:
            os.setpgid(0, 0)  # the fork server's session, so that one group has all brains
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for inherited in (self._sock, self._alarm, self._wake):
                inherited.close()
            harden()
            kernel.prctl(kernel.PR_SET_NAME, ctypes.c_char_p(b"wf-brain"))
            gc.enable()
            code = agent_loop.run(spec, self._make)
        except BaseException:
            traceback.print_exc()
        finally:
            with contextlib.suppress(OSError, ValueError):
                sys.stderr.flush()
            os._exit(code)


def inherited(description: str, argv: list[str] | None = None) -> socket.socket:
    """The socket to the supervisor, named by ``--fd``; no child of ours gets it by an exec."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--fd", type=int, required=True, help="inherited stream socket to the supervisor")
    sock = socket.socket(fileno=parser.parse_args(argv).fd)
    sock.set_inheritable(False)
    return sock
