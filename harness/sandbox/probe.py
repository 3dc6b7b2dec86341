"""Forbidden and allowed acts, tried for real from inside the sandbox; prints one JSON object. Standard library only.

Run by `harness.executor.selftest` as the tool of a sandboxed call. Each act gives (it went through, what happened).
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import json
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

_libc = ctypes.CDLL(None, use_errno=True)
_PTRACE_ATTACH = 16
_CLONE_NEWUSER = 0x10000000
_TIOCSTI = 0x5412
_SYS_IO_URING_SETUP = 425


class Given(NamedTuple):
    """What it is to reach for: folders and files of the host and the session, sockets and a port that somebody listens
    on, a process, and a word in the environment of ours.
    """

    worktree: str
    common: str
    home: str
    secret: str
    beside: str
    unix: str
    abstract: str
    port: int
    pid: int
    canary: str


Act = Callable[[Given], str]


def _called(result: int, what: str) -> str:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return f"{what} succeeded"


def _write(path: str) -> str:
    with open(path, "a", encoding="utf-8") as file:
        file.write("written from inside the sandbox\n")
    return f"wrote {path}"


def _read(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return f"read {len(file.read())} characters of {path}"


def _list(path: str) -> str:
    return f"{path} holds {len(os.listdir(path))} entries"


def _connect(family: int, address: str | tuple[str, int]) -> str:
    with socket.socket(family, socket.SOCK_STREAM) as sock:
        sock.settimeout(2)
        sock.connect(address)
    return f"connected to {address!r}"


def _socket(family: int, kind: int) -> str:
    socket.socket(family, kind).close()
    return "socket opened"


def _replace_git(given: Given) -> str:
    path = f"{given.worktree}/.git.new"
    with open(path, "w", encoding="utf-8") as file:
        file.write("gitdir: /nonexistent\n")
    try:
        os.replace(path, f"{given.worktree}/.git")
    finally:
        if os.path.exists(path):
            os.unlink(path)
    return "replaced the worktree's .git"


def _host_processes(_given: Given) -> str:
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    if len(pids) > 6:
        return f"{len(pids)} processes are visible"
    raise PermissionError(errno.EPERM, f"only its own {len(pids)} processes are visible")


def _canary(given: Given) -> str:
    found = [name for name, value in os.environ.items() if given.canary in value]
    for pid in (name for name in os.listdir("/proc") if name.isdigit()):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if given.canary.encode() in file.read():
                    found.append(f"/proc/{pid}/environ")
        except OSError:  # another domain's process: exactly what is wanted
            continue
    if found:
        return f"the canary is in {', '.join(found)}"
    raise PermissionError(errno.EPERM, "the canary is in no environment")


def _push_terminal(_given: Given) -> str:
    leader, follower = os.openpty()
    try:
        return _called(_libc.ioctl(follower, ctypes.c_ulong(_TIOCSTI), ctypes.c_char_p(b"x")), "TIOCSTI")
    finally:
        os.close(leader)
        os.close(follower)


def _leave_daemon(given: Given) -> str:
    """Not judged here: the host sees whether the output pipe, which the daemon holds, ever ends."""
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        while True:
            signal.pause()
    raise PermissionError(errno.EPERM, "left for the host to judge")


def _kill(given: Given) -> str:
    os.kill(given.pid, signal.SIGKILL)
    return f"killed {given.pid}"


def _git(given: Given) -> str:
    done = subprocess.run(
        ["git", "status", "--porcelain"], cwd=given.worktree, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise OSError(errno.EIO, f"git status: {done.stderr.strip()[:200]}")
    return "git status works"


FORBIDDEN: dict[str, Act] = {
    "write outside the worktree": lambda given: _write(given.beside),
    "write to the home folder": lambda given: _write(f"{given.home}/.watchfloor-selftest"),
    "write to a system folder": lambda given: _write("/usr/watchfloor-selftest"),
    "read the keys in ~/.ssh": lambda given: _list(f"{given.home}/.ssh"),
    "read the state folder": lambda given: _read(given.secret),
    "write to the state folder": lambda given: _write(given.secret),
    "connect to a unix socket": lambda given: _connect(socket.AF_UNIX, given.unix),
    "connect to an abstract socket": lambda given: _connect(socket.AF_UNIX, "\0" + given.abstract),
    "connect to a server of this machine": lambda given: _connect(socket.AF_INET, ("127.0.0.1", given.port)),
    "connect to the internet": lambda given: _connect(socket.AF_INET, ("192.0.2.1", 80)),
    "open a raw packet socket": lambda given: _socket(socket.AF_PACKET, socket.SOCK_RAW),
    "signal a process outside": _kill,
    "trace another process": lambda given: _called(_libc.ptrace(_PTRACE_ATTACH, 1, None, None), "ptrace"),
    "read the memory of another process": lambda given: _read("/proc/1/mem"),
    "see the processes of this machine": _host_processes,
    "mount a file system": lambda given: _called(_libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, None), "mount"),
    "make new namespaces": lambda given: _called(_libc.unshare(_CLONE_NEWUSER), "unshare"),
    "set up io_uring": lambda given: _called(
        _libc.syscall(_SYS_IO_URING_SETUP, 1, ctypes.create_string_buffer(120)), "io_uring_setup"
    ),
    "type into a terminal": _push_terminal,
    "change a kernel setting": lambda given: _write("/proc/sys/kernel/core_pattern"),
    "write the repository's configuration": lambda given: _write(f"{given.common}/config"),
    "write a hook of the repository": lambda given: _write(f"{given.common}/hooks/post-checkout"),
    "move another branch of the repository": lambda given: _write(f"{given.common}/refs/heads/main"),
    "redirect the worktree to another repository": _replace_git,
    "find a secret in an environment": _canary,
    "leave a daemon behind": _leave_daemon,
}
ALLOWED: dict[str, Act] = {
    "write in the worktree": lambda given: _write(f"{given.worktree}/from-inside"),
    "run Python": lambda given: subprocess.run(
        [sys.executable, "-I", "-S", "-c", "print(6 * 7)"], check=True, capture_output=True, text=True
    ).stdout.strip(),
    "run git status": _git,
}


def attempt(act: Act, given: Given) -> tuple[bool, str]:
    """(it went through, what happened)."""
    try:
        return True, act(given)
    except (OSError, subprocess.SubprocessError) as exc:
        return False, getattr(exc, "strerror", None) or str(exc)


def bounds() -> dict[str, int]:
    """The limits that this process finds itself under, by name; what cannot be read is left out."""
    found = {"nice": os.nice(0)}
    for name, what in (
        ("nproc", resource.RLIMIT_NPROC),
        ("data", resource.RLIMIT_DATA),
        ("fsize", resource.RLIMIT_FSIZE),
    ):
        found[name] = resource.getrlimit(what)[0]
    for name, path in (
        ("oom", "/proc/self/oom_score_adj"),
        ("pid_max", "/proc/sys/kernel/pid_max"),
        ("shmall", "/proc/sys/kernel/shmall"),
    ):
        with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as file:
            found[name] = int(file.read())
    for name, path in (("tmp", "/tmp"), ("shm", "/dev/shm")):
        with contextlib.suppress(OSError):
            info = os.statvfs(path)
            found[name] = info.f_blocks * info.f_frsize
    return found


def main() -> None:
    """Try everything with the facts given as JSON in the first argument."""
    given = Given(**json.loads(sys.argv[1]))
    results = {name: attempt(act, given) for name, act in {**FORBIDDEN, **ALLOWED}.items()}
    with open("/proc/self/status", encoding="ascii", errors="replace") as file:
        status = dict(line.split(":\t", 1) for line in file.read().splitlines() if ":\t" in line)
    walls = {"seccomp": status.get("Seccomp") == "2", "no_new_privs": status.get("NoNewPrivs") == "1"}
    print(json.dumps({"results": results, **walls, "bounds": bounds()}))


if __name__ == "__main__":
    main()
