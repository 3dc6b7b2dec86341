"""The limits that the runner puts on itself and so on everything it starts. Standard library only, and little of it:
every call pays for it.

What the kernel enforces without cgroups: resource limits, the process numbers and System V shared memory of the call's
own namespaces, a low priority, and being the first that an out-of-memory kernel takes.
"""

from __future__ import annotations

import contextlib
import functools
import os
import resource

from harness.sandbox.call_plan import Bounds

SYSCTL_FD = 5
GROUP_FD = 6
OOM_SCORE_ADJ = 900
PID_MAX_SINCE = (6, 14)
"""The first kernel whose ``kernel.pid_max`` belongs to the process namespace; on older ones it is the whole machine's.
"""
NPROC_SINCE = (5, 14)
"""The first kernel that counts RLIMIT_NPROC within a user namespace; on older ones all processes of the user count."""
_OLD_NPROC = 4096
_OURS = 2
"""The warden and the inmate (`harness.sandbox.namespace_clone`) are in the user namespace too, so the kernel counts
them there.
"""
_RESERVED_PIDS = 300
_PAGE = 4096


@functools.cache
def kernel_version() -> tuple[int, int]:
    """(6, 14) and the like; (0, 0) when the kernel does not say."""
    parts = os.uname().release.split(".")
    try:
        return int(parts[0]), int("".join(c for c in parts[1] if c.isdigit()) or 0)
    except (IndexError, ValueError):
        return 0, 0


def namespaces() -> dict[str, str]:
    """Which process and IPC namespaces this process lives in; the runner compares with those of the keeper."""
    return {name: os.readlink(f"/proc/self/ns/{name}") for name in ("pid", "ipc")}


def join_group(given: bool) -> None:
    """Enter the call's cgroup through the descriptor that the keeper opened. Raises OSError: then nothing may run."""
    if given:
        try:
            os.write(GROUP_FD, b"0")
        finally:
            os.close(GROUP_FD)


def apply(limits: Bounds, *, sandboxed: bool) -> None:
    """Bound this process and all its children. Raises OSError when a limit that works everywhere is refused."""
    with contextlib.suppress(OSError):  # already higher, where somebody above us set it so
        _write_number("/proc/self/oom_score_adj", OOM_SCORE_ADJ)
    if limits.nice:
        os.nice(limits.nice)
    if not sandboxed:
        return
    for what, value in (
        (resource.RLIMIT_FSIZE, limits.file),
        (resource.RLIMIT_DATA, limits.each),
        (
            resource.RLIMIT_NPROC,
            limits.processes + _OURS if kernel_version() >= NPROC_SINCE else max(limits.processes, _OLD_NPROC),
        ),
    ):
        if value is not None:
            hard = resource.getrlimit(what)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(what, (value, value))
    if limits.sysctl:
        try:
            _namespaced(limits)
        finally:
            os.close(SYSCTL_FD)


def _namespaced(limits: Bounds) -> None:
    """Settings of the call's own namespaces, written through the host's ``/proc/sys/kernel``, which nothing but the
    runner may use.

    Each is written only when the namespace is provably not the host's: on an older kernel the same name would be the
    machine's own.
    """
    own = namespaces()
    pid_ns = own["pid"] != limits.host["pid"]
    ipc_ns = own["ipc"] != limits.host["ipc"]
    if pid_ns and kernel_version() >= PID_MAX_SINCE:
        _setting("pid_max", limits.processes + _RESERVED_PIDS)
    if ipc_ns:
        _setting("shmmax", limits.shm)
        _setting("shmall", max(1, limits.shm // _PAGE))


def _setting(name: str, value: int) -> None:
    with contextlib.suppress(OSError):  # the watch still counts; the doctor says which of these hold here
        fd = os.open(name, os.O_WRONLY | os.O_CLOEXEC | os.O_NOFOLLOW, dir_fd=SYSCTL_FD)
        try:
            os.write(fd, b"%d" % value)
        finally:
            os.close(fd)


def _write_number(path: str, value: int) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, b"%d" % value)
    finally:
        os.close(fd)
