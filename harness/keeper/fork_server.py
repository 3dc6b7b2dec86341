"""The keepers' fork server: imports everything once, freezes it, and forks one detached keeper per request. Standard
library only.

``python -P -s -E -m harness.keeper.fork_server --fd N``: requests come as frames on the inherited socket N,
``{id, op: "spawn", sid, state, runtime, fault?}``, and are answered once the keeper listens, ``{id, ok: true, pid,
start, boot}``, or refuses, ``{id, ok: false, error}``. At the end of the stream the fork server exits; its keepers live
on.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import re
import selectors
import socket
import sys
import traceback
from pathlib import Path
from typing import NoReturn

from harness.executor import runner
from harness.keeper import main
from harness.linux import groups, heap, kernel
from harness.protocol.connection import frames
from harness.protocol.paths import Folders, SessionFolder
from harness.sandbox import bubblewrap

_SID = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_ERRORS_KEPT = 1024 * 1024


class ForkServer:
    """Serves one socket. A keeper that takes long to recover does not hold up the others."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._decoder = frames.Decoder()
        self._selector = selectors.DefaultSelector()
        self._selector.register(sock, selectors.EVENT_READ, None)

    def run(self) -> None:
        """Until the other end closes."""
        try:
            while True:
                for key, _ in self._selector.select():
                    if key.data is not None:
                        self._announced(key.fd, key.data)
                    elif not self._requests():
                        return
        except (ConnectionError, frames.FrameError) as exc:
            print(f"fork server: the supervisor's end broke: {exc}", file=sys.stderr, flush=True)

    def _requests(self) -> bool:
        data = self._sock.recv(1 << 16)
        if not data:
            return False
        for body in self._decoder.feed(data):
            request = frames.parse(body)
            try:
                self._spawn(request)
            except (ValueError, OSError) as exc:
                self._answer(
                    {
                        "id": request.get("id"),
                        "ok": False,
                        "error": {"code": "spawn", "message": f"cannot start the keeper: {exc}"},
                    }
                )
        return True

    def _spawn(self, request: dict[str, object]) -> None:
        sid, state, runtime = (str(request.get(name, "")) for name in ("sid", "state", "runtime"))
        if (
            request.get("op") != "spawn"
            or not _SID.fullmatch(sid)
            or not state.startswith("/")
            or not runtime.startswith("/")
        ):
            raise ValueError("the request must be {op: spawn, sid, state, runtime} with absolute folders")
        folder = Folders(Path(state), Path(runtime), Path(state)).session(sid)
        read_end, write_end = os.pipe2(os.O_CLOEXEC)
        child = os.fork()
        if child == 0:
            _detach(folder, sid, write_end, str(request.get("fault") or ""))
        os.close(write_end)
        os.waitpid(child, 0)
        self._selector.register(read_end, selectors.EVENT_READ, (request.get("id"), bytearray()))

    def _announced(self, fd: int, waiting: tuple[object, bytearray]) -> None:
        number, said = waiting
        chunk = os.read(fd, 1 << 16)
        said += chunk
        if chunk and not said.endswith(b"\n"):
            return
        self._selector.unregister(fd)
        os.close(fd)
        try:
            reply = json.loads(said)
        except ValueError:
            reply = {
                "ok": False,
                "error": {
                    "code": "died",
                    "message": "the keeper died while it started; see keeper.err in the session's folder",
                },
            }
        self._answer({"id": number, **reply})

    def _answer(self, reply: dict[str, object]) -> None:
        self._sock.sendall(frames.encode(reply))


def _detach(folder: SessionFolder, sid: str, report: int, fault: str) -> NoReturn:
    """In the first child: leave the fork server's session and become, one fork later, the keeper."""
    code = 1
    try:
        os.setpgid(0, 0)  # the fork server's session, so that one group has all keepers
        if os.fork():
            os._exit(0)
        os.environ.clear()
        if fault:
            os.environ["WATCHFLOOR_FAULT"] = fault
        code = _keep(folder, sid, report)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _keep(folder: SessionFolder, sid: str, report: int) -> int:
    try:
        _stdio(folder, report)
        os.chdir("/")
        gc.enable()
        main.serve(
            folder, sid, lambda me: _say(report, {"ok": True, "pid": me.pid, "start": me.start, "boot": me.boot})
        )
    except main.StartError as exc:
        _say(report, {"ok": False, "error": exc.error})
        return 1
    return 0


def _say(report: int, reply: dict[str, object]) -> None:
    """Tell the fork server, once; that it died meanwhile is no reason not to keep."""
    with contextlib.suppress(OSError):
        os.write(report, json.dumps(reply).encode() + b"\n")
        os.close(report)


def _stdio(folder: SessionFolder, report: int) -> None:
    """Close what belongs to the fork server; input and output to nowhere, errors to the session's own file."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2 and int(name) != report:
            with contextlib.suppress(OSError):
                os.close(int(name))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(null, 1)
    try:
        errors = os.open(
            folder.root / "keeper.err", os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600
        )
        if os.fstat(errors).st_size > _ERRORS_KEPT:
            os.ftruncate(errors, 0)
        os.dup2(errors, 2)
        os.close(errors)
    except FileNotFoundError as exc:
        # asked for long ago: a keeper that comes late must not bring back what was given up or removed
        os.dup2(null, 2)
        raise main.StartError(
            "gone", f"session folder {folder.root} is not there; the session was removed or its launch given up"
        ) from exc
    except OSError as exc:
        os.dup2(null, 2)
        raise main.StartError(
            "io", f"session folder {folder.root} cannot be used: {exc.strerror or exc}", "make it writable"
        ) from exc
    finally:
        if null > 2:
            os.close(null)


def run(argv: list[str]) -> int:
    """Entry point; ``argv`` is ``["--fd", N]``."""
    if len(argv) != 2 or argv[0] != "--fd" or not argv[1].isdigit():
        print("usage: python -m harness.keeper.fork_server --fd N", file=sys.stderr)
        return 2
    groups.lower_ours()
    kernel.hide_memory()
    heap.give_back()
    with contextlib.suppress(bubblewrap.SandboxUnavailable):
        # remembered, so that no keeper has to probe before its first call; a failure is tried again then
        bubblewrap.find()
    runner.learn()
    gc.collect()
    gc.disable()
    gc.freeze()
    with socket.socket(fileno=int(argv[1])) as sock:
        sock.set_inheritable(False)
        ForkServer(sock).run()
    return 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
