"""Children that a supervisor of a test has from its birth, when it has one thread and knows no key: each becomes a
program of ours where the supervisor starts it, and is what was started there: its child, with what it was given.

One that nobody needed ends with its supervisor.
"""

from __future__ import annotations

import functools
import importlib
import json
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from harness.brain import brain_nursery, lean_sdk
from harness.hands import selftest
from tests import reborn

_PYTHON = (sys.executable, "-P", "-s", "-m")
_COUNT = 2
_LIMITS = (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC)
_AT_START = ("PYTHON", "LD_")
"""Variables that count when Python starts, but for those of byte code and of a stream that goes nowhere."""
_NO_MATTER = {"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}


def _nursery_of_brains() -> int:
    lean_sdk.leave_out = lambda: None  # as it was loaded
    return brain_nursery.main()


_PROGRAMS: dict[str, Callable[[], int]] = {
    "harness.brain.brain_nursery": _nursery_of_brains,
    "harness.hands.selftest": selftest.main,
}


class Seed(NamedTuple):
    """One that waits."""

    pid: int
    line: socket.socket


def load() -> None:
    """What the programs load, as they do it."""
    lean_sdk.leave_out()
    importlib.import_module("harness.brain.builtin")
    importlib.import_module("harness.brain.warm").load()


def sown() -> list[Seed]:
    """Fork them; the caller has one thread."""
    found: list[Seed] = []
    for _ in range(_COUNT):
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid == 0:
            kept = {0, 1, 2, theirs.fileno()}
            reborn.close_others(kept.__contains__)
            reborn.show((*_PYTHON, __name__), os.environ)
            _wait(theirs)
        theirs.close()
        found.append(Seed(pid, ours))
    return found


def serve_from(seeds: list[Seed]) -> None:
    """From here on this process's `subprocess` takes them for our programs, as long as there are any."""
    real = subprocess._fork_exec  # type: ignore[attr-defined]
    subprocess._fork_exec = functools.partial(_start, real, seeds)  # type: ignore[attr-defined]


def _start(real: Callable[..., int], seeds: list[Seed], *given: Any) -> int:
    """What `subprocess` calls to start a program: its words, its environment, and which descriptors it gets."""
    argv = [os.fsdecode(word) for word in given[0]]
    inherited, folder, listed = given[3:6]
    read, _, _, write, _, errors, _, failed = given[6:14]
    new_session = given[15]
    as_another = given[16:22] != (-1, None, None, None, -1, None)
    env = dict(os.environ) if listed is None else dict(os.fsdecode(pair).split("=", 1) for pair in listed)
    if tuple(argv[:4]) != _PYTHON or argv[4] not in _PROGRAMS or as_another or not _same_start(env):
        return real(*given)
    at = {fd: fd for fd in inherited if fd != failed}
    at |= {number: fd for number, fd in enumerate((read, write, errors)) if fd >= 0}
    order = {
        "argv": argv,
        "env": env,
        "cwd": os.getcwd() if folder is None else os.fsdecode(folder),
        "umask": _umask(),
        "limits": [resource.getrlimit(limit) for limit in _LIMITS],
        "session": bool(new_session),
        "at": list(at),
    }
    told = json.dumps(order).encode() + b"\n"
    while seeds:
        seed = seeds.pop()
        with seed.line:
            try:
                socket.send_fds(seed.line, [told[:1]], list(at.values()))
                seed.line.sendall(told[1:])
            except OSError:  # somebody killed it
                continue
            return seed.pid
    return real(*given)


def _same_start(env: dict[str, str]) -> bool:
    def counting(of: dict[str, str]) -> dict[str, str]:
        return {name: value for name, value in of.items() if name.startswith(_AT_START) and name not in _NO_MATTER}

    return counting(env) == counting(dict(os.environ))


def _umask() -> int:
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1], 8) for line in file if line.startswith("Umask:"))


def _wait(line: socket.socket) -> NoReturn:
    told, fds, _, _ = socket.recv_fds(line, 1, 16)
    while told and not told.endswith(b"\n"):
        more = line.recv(1 << 16)
        told = told + more if more else b""
    if not told:
        os._exit(0)
    order: dict[str, Any] = json.loads(told)
    line.detach()
    reborn.place(dict(zip(order["at"], fds, strict=True)))
    reborn.close_others({0, 1, 2, *order["at"]}.__contains__)
    if order["session"]:
        os.setsid()
    os.chdir(order["cwd"])
    os.umask(order["umask"])
    for limit, values in zip(_LIMITS, order["limits"], strict=True):
        resource.setrlimit(limit, values)
    argv: Sequence[str] = order["argv"]
    reborn.run(
        _PROGRAMS[argv[4]],
        argv,
        order["env"],
    )
