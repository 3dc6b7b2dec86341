"""How much a call may take of this machine, as data, and the sentences for a call that took more. Standard library
only.

`harness.protocol.config.config` has the same names under ``[limits]``; they travel to the keeper as the plain values of
`to_wire`.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, fields

KIB = 1 << 10
MIB = 1 << 20
GIB = 1 << 30


def ram() -> int:
    """Bytes of memory of this machine."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one call with all its processes; a session runs one call at a time, so they are the session's. Sizes in
    bytes, None = no limit.

    ``memory`` of all processes together, 0 for three quarters of the machine's; ``process_memory`` private data of each
    process, 0 for as much as ``memory``; ``memory_free`` what the machine keeps; ``disk`` and ``disk_files`` how far
    worktree and private git objects may grow beyond what they held at first; ``disk_free`` what the file system keeps;
    ``cpu_percent`` 100 is one core.
    """

    memory: int | None = 0
    process_memory: int | None = 0
    memory_free: int | None = 512 * MIB
    processes: int = 4096
    tmp: int = 2 * GIB
    shm: int = GIB
    disk: int | None = 10 * GIB
    disk_files: int | None = 500_000
    disk_free: int | None = GIB
    file: int | None = 4 * GIB
    nice: int = 5
    cpu_weight: int = 50
    cpu_percent: int | None = None

    def together(self) -> int | None:
        """The limit of all processes together, in bytes."""
        return ram() * 3 // 4 if self.memory == 0 else self.memory

    def each(self) -> int | None:
        """The limit of each process, in bytes."""
        return self.together() if self.process_memory == 0 else self.process_memory

    def free_memory(self) -> int:
        """Bytes of memory that stay for everything else; small machines keep less, so that they can work at all."""
        return min(self.memory_free or 0, ram() // 32) if self.memory_free else 0

    def free_disk(self, size: int) -> int:
        """Bytes that stay free on a file system of ``size`` bytes; 5 % at most, so that small ones can be used."""
        return min(self.disk_free or 0, size // 20)

    def to_wire(self) -> dict[str, int | None]:
        """Plain values for a frame."""
        return asdict(self)


DEFAULT = Limits()
_KNOWN: dict[str, object] = {field.name: field.type for field in fields(Limits)}


def from_wire(value: object) -> Limits:
    """The limits of a frame; without any the defaults. Raises ValueError naming the field that is no limit."""
    if value is None:
        return DEFAULT
    if not isinstance(value, dict):
        raise ValueError("limits must be an object")
    for name, item in value.items():
        if name not in _KNOWN:
            raise ValueError(f"limits: {str(name)[:60]!r} is no limit; the limits are {', '.join(_KNOWN)}")
        missing = item is None and "None" in str(_KNOWN[name])
        if not missing and (isinstance(item, bool) or not isinstance(item, int) or item < 0):
            raise ValueError(f"limits: {name} must be a whole number, 0 or more")
    return Limits(**value)


def size_text(size: int) -> str:
    """``1.5 GiB``: for people."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            number = size / unit
            return f"{number:.0f} {name}" if number >= 100 or size % unit == 0 else f"{number:.1f} {name}"
    return f"{size} bytes"


@dataclass(frozen=True, slots=True)
class Over:
    """A limit that a call passed: ``limit`` is its name under ``[limits]``, ``used`` and ``allowed`` bytes or numbers;
    ``where`` a place.
    """

    limit: str
    used: int
    allowed: int
    where: str = ""

    def text(self) -> str:
        """One sentence for the model and the human: what was passed, by how much, and which setting raises it."""
        used = size_text(self.used)
        allowed = size_text(self.allowed)
        match self.limit:
            case "memory":
                what = f"its processes took {used} of memory, and {allowed} is the limit"
            case "process_memory":
                what = f"one of its processes came to {used} of memory, and {allowed} is the limit of each"
            case "memory_free":
                what = f"this machine had {used} of memory left, and {allowed} must stay free"
            case "processes":
                what = f"it had {self.used} processes and threads, and {self.allowed} is the limit"
            case "disk":
                what = f"the session's files grew by {used}, and {allowed} is the limit; remove what is not needed"
            case "disk_files":
                what = (
                    f"the session made {self.used} files more than it began with, and {self.allowed} is the limit;"
                    " remove what is not needed"
                )
            case "disk_free":
                what = (
                    f"the disk of {self.where} had {used} left, and {allowed} must stay free; remove what is not needed"
                )
            case "tmp" | "shm":
                what = (
                    f"{'/tmp' if self.limit == 'tmp' else '/dev/shm'} of the call was full, and {allowed} is its size"
                )
            case "file":
                what = f"a file of it came to {allowed}, which is the limit of one file"
            case _:
                what = f"it used {self.used} of {self.limit}, and {self.allowed} is the limit"
        return f"{what} (a human can raise it: {self.limit} under [limits] in config.toml)"
