"""Which files of a worktree need no second look: what git itself noted of them when it wrote the index. Pure but for
one file of git's own.

Only an index outside the fence is read, which no agent can write. An index in a form that is not known here gives no
stamps: then every file is read.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from pathlib import Path

_ENTRY = struct.Struct(">10I")
_SKIP = 0x4000
_ASSUMED = 0x8000
_EXTENDED = 0x4000
_LOW = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Stamp:
    """One file as git last saw it; ``skip`` marks a file that a sparse checkout leaves out, or whose changes its owner
    keeps to himself, ``assumed`` one that he told git not to look at.
    """

    oid: str
    times: tuple[int, int, int, int]
    inode: int
    size: int
    skip: bool
    racy: bool
    assumed: bool = False

    def fits(self, info: os.stat_result) -> bool:
        """True when the file has not been touched since, so that it still holds ``oid``."""
        times = (*divmod(info.st_ctime_ns, 10**9), *divmod(info.st_mtime_ns, 10**9))
        low = tuple(part & _LOW for part in times)
        return (
            not self.racy
            and self.times == low
            and self.inode == info.st_ino & _LOW
            and self.size == info.st_size & _LOW
        )


def left_out(path: str, known: dict[str, Stamp]) -> bool:
    """True for a file that a sparse checkout leaves out, alone or with its folder, which a sparse index has instead."""
    at = path
    while at:
        stamp = known.get(at)
        if stamp is not None:
            return stamp.skip
        above, slash, _ = at.rstrip("/").rpartition("/")
        at = above + slash
    return False


def read(index: Path, oid_bytes: int) -> dict[str, Stamp]:
    """Stamps by path; empty when there is no index or it is of a form not known here."""
    try:
        with open(index, "rb") as file:
            written = os.fstat(file.fileno()).st_mtime_ns
            data = file.read()
        return _parse(data, oid_bytes, written)
    except (OSError, ValueError, IndexError, struct.error):
        return {}


def _parse(data: bytes, oid_bytes: int, written: int) -> dict[str, Stamp]:
    magic, version, count = struct.unpack_from(">4sII", data)
    if magic != b"DIRC" or version not in (2, 3, 4):
        return {}
    found: dict[str, Stamp] = {}
    at = 12
    name = b""
    for _ in range(count):
        c_s, c_ns, m_s, m_ns, _, inode, _, _, _, size = _ENTRY.unpack_from(data, at)
        oid = data[at + 40 : at + 40 + oid_bytes].hex()
        place = at + 40 + oid_bytes
        (flags,) = struct.unpack_from(">H", data, place)
        place += 2
        skip = False
        if flags & _EXTENDED:
            skip = bool(struct.unpack_from(">H", data, place)[0] & _SKIP)
            place += 2
        strip = 0
        if version == 4:
            strip, place = _varint(data, place)
        end = data.index(b"\0", place)
        name = name[: len(name) - strip] + data[place:end] if version == 4 else data[place:end]
        if not flags & 0x3000:  # an entry of an unfinished merge says nothing
            racy = m_s * 10**9 + m_ns >= written
            times = (c_s, c_ns, m_s, m_ns)
            found[os.fsdecode(name)] = Stamp(oid, times, inode, size, skip, racy, bool(flags & _ASSUMED))
        at = end + 1 if version == 4 else at + ((end - at + 8) & ~7)
    return found


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """(number, place behind it) in the form of git's index version 4."""
    number = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        number = ((number + 1) << 7) | (data[at] & 0x7F)
    return number, at + 1
