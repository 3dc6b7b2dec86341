"""The command line, the simulator and the supervisor, loaded once for all tests of a worker: each command, each
simulator, each guardian that a command starts and each supervisor that such a guardian starts is a fork of that
process, with arguments, environment, folder, umask and streams of its own, and ends as a program does.

What Python's start and the loading itself do is held by the tests that run the program (`tests/e2e`, `COMMAND`). Of
what a supervisor starts, its first fork servers and its first self-test are forks too (`tests/seeds.py`); calls and git
are started as ever.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from tests import reborn, seeds

_MOST = 1 << 20
_PYTHON = (sys.executable, "-P", "-s", "-m")
_GUARDIAN = (*_PYTHON, "harness.supervisor.guardian")
_SUPERVISOR = (*_PYTHON, "harness.supervisor.main")
_SAME = ("ANTHROPIC", "WATCHFLOOR", "PYTEST_CURRENT_TEST")
"""Variables by which a fork may differ from what the process was started with: others count when Python starts."""


class Forked:
    """One of the forks, as its starter sees it: what `subprocess.Popen` has, as far as tests use it."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._reader = line.makefile("r", encoding="ascii")
        self._ended: int | None = None
        self.pid = int(self._reader.readline())

    def send_signal(self, number: int) -> None:
        if self._ended is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def wait(self, timeout: float | None = None) -> int:
        """Its exit code, negative for a signal."""
        if self._ended is None:
            self._line.settimeout(timeout)
            self._ended = int(self._reader.readline())
            self._reader.close()
            self._line.close()
        return self._ended


def fits(env: Mapping[str, str]) -> bool:
    """Whether a fork with this environment is what a program would be that was started with it."""
    return _others(env) == _AT_START


def _others(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if not name.startswith(_SAME)}


_AT_START = _others(os.environ)


def start(kind: str, args: Sequence[str], env: Mapping[str, str], streams: Sequence[int]) -> Forked:
    """Fork a ``command``, a ``simulator`` or a ``guardian`` with these descriptors as its first ones: input, output,
    errors and what else it is given.
    """
    umask = os.umask(0o077)
    os.umask(umask)
    like = {"kind": kind, "args": list(args), "env": dict(env), "cwd": os.getcwd(), "umask": umask}
    asked = json.dumps(like).encode() + b"\n"
    line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    line.connect(_server())
    socket.send_fds(line, [asked[:1]], list(streams))
    line.sendall(asked[1:])
    return Forked(line)


def run(args: Sequence[str], env: Mapping[str, str], timeout: float) -> subprocess.CompletedProcess[str]:
    """Run a command of the command line to its end, without input, as `subprocess.run` does."""
    null = os.open(os.devnull, os.O_RDONLY)
    ends = os.pipe(), os.pipe()
    try:
        forked = start("command", args, env, (null, ends[0][1], ends[1][1]))
    finally:
        for fd in (null, ends[0][1], ends[1][1]):
            os.close(fd)
    said: dict[int, bytearray] = {ends[0][0]: bytearray(), ends[1][0]: bytearray()}
    deadline = time.monotonic() + timeout
    with selectors.DefaultSelector() as selector:
        for fd in said:
            selector.register(fd, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(deadline - time.monotonic())
            if not ready:
                forked.kill()
                raise subprocess.TimeoutExpired(["watchfloor", *args], timeout, *map(bytes, said.values()))
            for key, _ in ready:
                chunk = os.read(key.fd, 1 << 16)
                said[key.fd] += chunk
                if not chunk:
                    selector.unregister(key.fd)
                    os.close(key.fd)
    code = forked.wait(max(0.1, deadline - time.monotonic()))
    out, err = (bytes(part).decode() for part in said.values())
    return subprocess.CompletedProcess(["watchfloor", *args], code, out, err)


_lock = threading.Lock()


def _server() -> str:
    with _lock:
        return _started(os.getpid())


_here: list[str] = []
"""In a fork: the name of the socket of the process that it was forked from."""
_shown: list[bool] = []
"""In a fork: not empty where the kernel shows it as what it is; where it cannot, guardians are started as ever."""


@functools.cache
def _started(pid: int) -> str:
    """The name of the socket of the process that this one (``pid``) starts, which ends with it."""
    if _here:
        return _here[0]
    name = f"\0watchfloor-warm-{pid}-{os.urandom(4).hex()}"
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(name)
    listener.listen(64)
    end, _ = os.pipe()  # the other end stays open as long as we live
    subprocess.Popen(
        [sys.executable, "-P", "-s", "-m", "tests.warm", str(listener.fileno()), str(end)],
        env=_AT_START,
        cwd=Path(__file__).parents[1],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=(listener.fileno(), end),
    )
    listener.close()
    os.close(end)
    return name


# -- the process that is forked --------------------------------------------------------------------


def _load() -> None:
    import app.cli.grammar.parser
    import app.main
    import harness.executor.selftest
    import harness.simulator.__main__
    import harness.supervisor.guardian
    import harness.supervisor.main  # noqa: F401

    for module in pkgutil.walk_packages(app.cli.__path__, "app.cli."):
        importlib.import_module(module.name)
    app.cli.grammar.parser.build()
    seeds.load()
    gc.collect()
    gc.freeze()


def _serve(listener: socket.socket, end: int) -> None:
    """Fork what is asked for until ``end`` is at its end, which our starter holds."""
    waker, woken = socket.socketpair()
    woken.setblocking(False)
    waker.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken.fileno())
    children: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as selector:
        for one in (listener, end, waker):
            selector.register(one, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                if key.fileobj is end:
                    for pid in children:
                        os.kill(pid, signal.SIGKILL)
                    return
                if key.fileobj is waker:
                    waker.recv(4096)
                    _reap(children)
                else:
                    line = listener.accept()[0]
                    pid = os.fork()
                    if pid == 0:
                        selector.close()
                        for other in (listener, waker, woken, *children.values()):
                            other.detach()
                        _become(line)
                    children[pid] = line
                    line.sendall(f"{pid}\n".encode())


def _reap(children: dict[int, socket.socket]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with children.pop(pid) as line, contextlib.suppress(OSError):
            line.sendall(f"{os.waitstatus_to_exitcode(status)}\n".encode())


class _Asked(BaseException):
    """Leaves the loop of the process in a fork of it, with what it becomes."""

    def __init__(self, kind: str, args: list[str], env: dict[str, str]) -> None:
        super().__init__()
        self.kind = kind
        self.args_given = args
        self.env = env


def _become(line: socket.socket) -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    first, fds, _, _ = socket.recv_fds(line, 1, 8)
    rest = bytearray(first)
    while not rest.endswith(b"\n"):
        rest += line.recv(1 << 16)
    asked = json.loads(rest)
    reborn.place(dict(enumerate(fds)))
    line.detach()
    os.closerange(len(fds), _MOST)
    os.environ.clear()
    os.environ.update(asked["env"])
    os.chdir(asked["cwd"])
    os.umask(asked["umask"])
    raise _Asked(asked["kind"], asked["args"], asked["env"])


def _main(listener: int, end: int) -> int:
    _load()
    asking = socket.socket(fileno=listener)
    _here.append(asking.getsockname().decode())
    if reborn.can_show():
        _shown.append(True)
    try:
        _serve(asking, end)
    except _Asked as asked:
        program = Path(sys.executable).with_name("watchfloor")
        sys.argv = [str(program), *asked.args_given]
        if asked.kind == "guardian":
            _guardian(asked)
        from harness.simulator import __main__ as simulator

        reborn.end(_command if asked.kind == "command" else simulator.main)
    return 0


def _command() -> int:
    from app.main import main

    os.posix_spawn = functools.partial(_of_a_command, os.posix_spawn)
    return main()


def _guardian(asked: _Asked) -> NoReturn:
    from harness.supervisor.guardian import main

    os.setsid()
    os.posix_spawn = functools.partial(_of_a_guardian, os.posix_spawn)
    reborn.run(main, [*_GUARDIAN, *asked.args_given], asked.env)


def _of_a_command(
    spawn: Callable[..., int], path: str, argv: Sequence[str], env: Mapping[str, str], **more: Any
) -> int:
    """What a command starts: its guardian is asked for where the command was, everything else is started."""
    at = {new: old for _, old, new in more.get("file_actions", ())}
    if _shown and tuple(argv[:5]) == _GUARDIAN and fits(env) and sorted(at) == list(range(len(at))):
        return start("guardian", argv[5:], env, [at[number] for number in sorted(at)]).pid
    return spawn(path, argv, env, **more)


def _of_a_guardian(
    spawn: Callable[..., int], path: str, argv: Sequence[str], env: Mapping[str, str], **more: Any
) -> int:
    """What a guardian starts: its supervisor is a fork of it."""
    if tuple(argv[:5]) != _SUPERVISOR or not fits(env):
        return spawn(path, argv, env, **more)
    shown = dict(env)
    pid = os.fork()
    if pid == 0:
        reborn.run(_supervisor, argv, shown, mask=more["setsigmask"], default=more["setsigdef"])
    return pid


def _supervisor() -> NoReturn:
    from harness.supervisor.main import main

    seeds.serve_from(seeds.sown())
    reborn.leave(main())  # as it does, whatever thread still waits for something


if __name__ == "__main__":
    sys.exit(_main(int(sys.argv[1]), int(sys.argv[2])))
