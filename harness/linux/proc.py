"""Processes as /proc shows them: who one is, how it is, and what is below it. Standard library only."""

from __future__ import annotations

import functools
import os
from typing import NamedTuple

_PAGE = 4096


class Identity(NamedTuple):
    """A process that cannot be confused with a later one of the same number."""

    pid: int
    start: int
    """Clock ticks after boot, /proc/PID/stat field 22."""
    boot: str
    """The kernel's boot id."""


@functools.cache
def boot_id() -> str:
    """The kernel's name of this boot, in which this process began. Raises OSError."""
    with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as f:
        return f.read().strip()


def _read(path: str) -> bytes:
    """A file that the kernel makes up in one piece. Raises OSError."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _PAGE)
    finally:
        os.close(fd)


def stat(pid: int) -> list[str] | None:
    """Fields of /proc/PID/stat from the third (state) on; None when there is no such process that we may look at."""
    try:
        raw = _read(f"/proc/{pid}/stat")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    return raw[raw.rfind(b")") + 2 :].decode("ascii").split()


def command(pid: int) -> list[bytes]:
    """What a process was started with; nothing for one that is gone or none of ours to look at."""
    try:
        with open(f"/proc/{pid}/cmdline", "rb") as file:
            return file.read().split(b"\0")[:-1]
    except OSError:
        return []


def holder(pid: int) -> Identity | None:
    """Who has this number, one that ended and was not collected too; None when nobody has it."""
    fields = stat(pid)
    return None if fields is None else Identity(pid, int(fields[19]), boot_id())


def identify(pid: int) -> Identity | None:
    """Identity of a living process; None when it is gone or a zombie."""
    fields = stat(pid)
    if fields is None or fields[0] in "ZX":
        return None
    return Identity(pid, int(fields[19]), boot_id())


_STOPPED = "Tt"


def stopped(pid: int) -> bool:
    """True for a process that somebody stopped."""
    fields = stat(pid)
    return fields is not None and fields[0] in _STOPPED


class Look(NamedTuple):
    """How a process is at a moment: two looks that are the same, a while apart, are of one that does nothing."""

    state: str
    """The kernel's letter: T and t for one that was stopped, D for one that waits for a disk."""
    work: tuple[str, ...]
    """Counters that grow with what it does: page faults, processor time, waiting for disks."""

    @property
    def stopped(self) -> bool:
        return self.state in _STOPPED


def look(who: Identity) -> Look | None:
    """How exactly this process is now; None when it is gone."""
    fields = stat(who.pid)
    if fields is None or fields[0] in "ZX" or int(fields[19]) != who.start:
        return None
    return Look(fields[0], (*fields[7:15], fields[39]))


def alive(who: Identity) -> bool:
    """True while exactly this process runs; a zombie, a reused pid and another boot count as dead."""
    return identify(who.pid) == who


def children(pid: int) -> list[int]:
    """The children of a process of one thread, the dead that nobody collected among them."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", "rb") as file:
            return [int(child) for child in file.read().split()]
    except (FileNotFoundError, ProcessLookupError):  # it is gone, or the kernel has no such list
        parents = {int(name): stat(int(name)) for name in os.listdir("/proc") if name.isdigit()}
        return [child for child, fields in parents.items() if fields is not None and int(fields[1]) == pid]


def descendants(root: int) -> list[int]:
    """Every living process below ``root``, from one look at /proc."""
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := stat(int(name))) is not None and fields[0] not in "ZX":
            parents[int(name)] = int(fields[1])
    found: list[int] = []
    layer = {root}
    while layer:
        layer = {pid for pid, parent in parents.items() if parent in layer}
        found.extend(layer)
    return found
