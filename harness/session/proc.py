"""Who a process is, and how to end a whole tree of them. Standard library only."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Collection
from typing import NamedTuple

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_libc = ctypes.CDLL(None, use_errno=True)


class Identity(NamedTuple):
    """A process that cannot be confused with a later one of the same number."""

    pid: int
    start: int
    """Clock ticks after boot, /proc/PID/stat field 22."""
    boot: str
    """The kernel's boot id."""


def boot_id() -> str:
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as f:
        return f.read().strip()


def _stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the third (state) on, or None when there is no such process."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            raw = f.read()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return raw[raw.rfind(b")") + 2 :].decode("ascii").split()


def identify(pid: int) -> Identity | None:
    """Identity of a living process; None when it is gone or a zombie."""
    fields = _stat(pid)
    if fields is None or fields[0] in "ZX":
        return None
    return Identity(pid, int(fields[19]), boot_id())


class Look(NamedTuple):
    """How a process is at a moment: two looks that are the same, a while apart, are of one that does nothing."""

    state: str
    """The kernel's letter: T and t for one that was stopped, D for one that waits for a disk."""
    work: tuple[str, ...]
    """Counters that grow with what it does: page faults, processor time, waiting for disks."""

    @property
    def stopped(self) -> bool:
        return self.state in "Tt"


def look(who: Identity) -> Look | None:
    """How exactly this process is now; None when it is gone."""
    fields = _stat(who.pid)
    if fields is None or fields[0] in "ZX" or int(fields[19]) != who.start:
        return None
    return Look(fields[0], (*fields[7:15], fields[39]))


def alive(who: Identity) -> bool:
    """True while exactly this process runs; a zombie, a reused pid and another boot count as dead."""
    return identify(who.pid) == who


def no_dump() -> None:
    """Nobody of this user may read our memory or attach to us."""
    _prctl(_PR_SET_DUMPABLE, 0)


def harden() -> None:
    """`no_dump`, and the orphans of our children come to us."""
    no_dump()
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(0), ctypes.c_ulong(0), ctypes.c_ulong(0)) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}, {value}): {os.strerror(code)}")


def descendants(root: int) -> list[int]:
    """Every living process below ``root``, from one look at /proc."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := _stat(int(name))) is not None and fields[0] not in "ZX":
            parents[int(name)] = int(fields[1])
    found: list[int] = []
    layer = {root}
    while layer:
        layer = {pid for pid, parent in parents.items() if parent in layer}
        found.extend(layer)
    return found


def reap(spare: Collection[int] = ()) -> tuple[bool, int]:
    """Collect the dead among our children: (none but ``spare`` are left and so, for a subreaper, no other descendant;
    bytes the largest held).

    The largest includes those that the dead had themselves waited for.
    """
    largest = 0
    for pid in _children():
        if pid not in spare:
            with contextlib.suppress(ChildProcessError):
                _, _, used = os.wait4(pid, os.WNOHANG)
                largest = max(largest, used.ru_maxrss << 10)
    return all(pid in spare for pid in _children()), largest


def _children() -> list[int]:
    """Our children, the dead that nobody collected among them."""
    me = os.getpid()
    try:
        with open(f"/proc/self/task/{me}/children", "rb") as file:
            return [int(pid) for pid in file.read().split()]
    except FileNotFoundError:  # a kernel without this list
        parents = {int(name): _stat(int(name)) for name in os.listdir("/proc") if name.isdigit()}
        return [pid for pid, fields in parents.items() if fields is not None and int(fields[1]) == me]


def kill_below_us(spare: Collection[int] = ()) -> None:
    """Send SIGKILL to every descendant that exists now but ``spare`` and those below them; callers repeat until `reap`
    says that none is left.
    """
    kept = {*spare, *(below for pid in spare if pid for below in descendants(pid))}
    for pid in descendants(os.getpid()):
        if pid in kept:
            continue
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            continue


def kill_session(leader: Identity, timeout_s: float) -> bool:
    """Kill what a dead keeper's call left: everything below ``leader`` and in its session; True when nothing is left
    within ``timeout_s``.

    The leader goes last, since only through it, a subreaper outside the fence, daemons are found that left its session.
    Members of the session that are older than the leader belong to somebody who had the number before and are left
    alone.
    """
    if leader.boot != boot_id():
        return True
    deadline = time.monotonic() + timeout_s
    while True:
        now = identify(leader.pid)
        if now is not None and now.start != leader.start:
            return True
        members = set(_members(leader))
        left = members | set(descendants(leader.pid) if now is not None else ())
        if not left:
            return True
        if time.monotonic() > deadline:
            return False
        rest = left - {leader.pid}
        # what is born faster than it is killed must not keep its leader alive
        late = time.monotonic() > deadline - timeout_s / 2
        for pid in rest if rest and not late else left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.01)


def _members(leader: Identity) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := _stat(int(name))) is not None:
            ours = int(fields[3]) == leader.pid and int(fields[19]) >= leader.start
            if ours and fields[0] not in "ZX":
                found.append(int(name))
    return found
