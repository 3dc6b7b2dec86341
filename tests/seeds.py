"""Children that a supervisor of a test has from its birth, when it has one thread and knows no key: each becomes a
program of ours where the supervisor starts it, and is what was started there: its child, with what it was given.

One that nobody needed ends with its supervisor. The self-test of the sandbox, which says the same of the same machine,
is carried out by the first; those that would carry it out alike say what that one said.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import json
import mmap
import os
import resource
import socket
import struct
import subprocess
import sys
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, NoReturn

from harness.brain import brain_fork_server
from harness.budget import prices
from harness.executor import selftest
from harness.keeper import fork_server
from harness.sandbox import bubblewrap
from tests import reborn

_PYTHON = (sys.executable, "-P", "-s", "-m")
_COUNT = 3
_LIMITS = (resource.RLIMIT_NOFILE, resource.RLIMIT_CORE, resource.RLIMIT_FSIZE, resource.RLIMIT_NPROC)
_AT_START = ("PYTHON", "LD_")
"""Variables that count when Python starts, but for those of byte code and of a stream that goes nowhere."""
_NO_MATTER = {"PYTHONDONTWRITEBYTECODE", "PYTHONUNBUFFERED"}
_ONE_FLEETS = "WATCHFLOOR"
"""How the variables begin that differ from fleet to fleet, and of which the self-test reads none."""

_tested = mmap.mmap(-1, 1 << 16)
"""Shared with all that are forked from us: what a self-test said that went well, behind its length and its checksum."""
_HEAD = struct.Struct("=II")


def _nursery_of_keepers() -> int:
    return fork_server.run(sys.argv[1:])


def _self_test() -> int:
    asked = _asked()
    if (said := _recalled(asked)) is not None:
        print(said, end="")
        return 0
    with contextlib.redirect_stdout(io.StringIO()) as kept:
        code = selftest.main()
    print(kept.getvalue(), end="")
    if code == 0:
        _remember(asked, kept.getvalue())
    return code


def _asked() -> str:
    """All that a self-test's answer hangs on, on one machine."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(_ONE_FLEETS)}
    with open("/proc/self/cgroup", encoding="utf-8") as file:
        place = file.read()
    return json.dumps([sys.argv[1:], env, _umask(), _bounds(), place], sort_keys=True)


def _remember(asked: str, said: str) -> None:
    text = json.dumps([asked, said]).encode()
    if len(text) <= len(_tested) - _HEAD.size:
        _tested[_HEAD.size : _HEAD.size + len(text)] = text
        _tested[: _HEAD.size] = _HEAD.pack(len(text), zlib.crc32(text))


def _recalled(asked: str) -> str | None:
    """What the last one said, when it was asked the same; None also while another one writes."""
    length, checksum = _HEAD.unpack(_tested[: _HEAD.size])
    text = _tested[_HEAD.size : _HEAD.size + length]
    if not length or zlib.crc32(text) != checksum:
        return None
    of, said = json.loads(text)
    return str(said) if of == asked else None


_PROGRAMS: dict[str, Callable[[], int]] = {
    "harness.brain.brain_fork_server": brain_fork_server.main,
    "harness.keeper.fork_server": _nursery_of_keepers,
    "harness.executor.selftest": _self_test,
}


class Seed(NamedTuple):
    """One that waits."""

    pid: int
    line: socket.socket


def load() -> None:
    """What the programs load, as they do it, and what a supervisor loads only when something needs it."""
    importlib.import_module("harness.brain.builtin")
    importlib.import_module("git")
    prices.lookup("claude-haiku-5-5")
    with contextlib.suppress(bubblewrap.SandboxUnavailable, OSError):
        bubblewrap.find()


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
    if _module(argv) not in _PROGRAMS or as_another or not _same_start(env):
        return real(*given)
    at = {fd: fd for fd in inherited if fd != failed}
    at |= {number: fd for number, fd in enumerate((read, write, errors)) if fd >= 0}
    order = {
        "argv": argv,
        "env": env,
        "cwd": os.getcwd() if folder is None else os.fsdecode(folder),
        "umask": _umask(),
        "limits": _bounds(),
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


def _module(argv: list[str]) -> str:
    """Which module is started; one that Python keeps apart from the environment is as good as any here."""
    words = [word for word in argv[:6] if word != "-E"]
    return words[4] if tuple(words[:4]) == _PYTHON and len(words) > 4 else ""


def _bounds() -> list[tuple[int, int]]:
    return [resource.getrlimit(limit) for limit in _LIMITS]


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
    reborn.run(_PROGRAMS[argv[argv.index("-m") + 1]], argv, order["env"])
