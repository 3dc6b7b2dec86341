"""Which files of a worktree need no second look: what git itself noted of them when it wrote the index. Pure but for
one file of git's own.

Only an index outside the sandbox is read, which no agent can write. An index in a form that is not known here gives no
stamps: then every file is read.
"""

from __future__ import annotations

import hashlib
import os
import struct
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

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
    found: dict[str, Stamp] = {}
    for one in _places(data, oid_bytes):
        if one.flags & 0x3000:  # an entry of an unfinished merge says nothing
            continue
        c_s, c_ns, m_s, m_ns, _, inode, _, _, _, size = _ENTRY.unpack_from(data, one.at)
        oid = data[one.at + 40 : one.at + 40 + oid_bytes].hex()
        racy = m_s * 10**9 + m_ns >= written
        assumed = bool(one.flags & _ASSUMED)
        found[one.path] = Stamp(oid, (c_s, c_ns, m_s, m_ns), inode, size, one.skip, racy, assumed)
    return found


class _Place(NamedTuple):
    """Where an entry of an index stands, and where its flags do."""

    path: str
    at: int
    flags_at: int
    flags: int
    more: int
    """Its further flags, 0 without any; they stand behind the others."""

    @property
    def skip(self) -> bool:
        return bool(self.more & _SKIP)


def _places(data: bytes, oid_bytes: int) -> Iterator[_Place]:
    """The entries of an index; none of a form that is not known here. Raises ValueError, IndexError, struct.error."""
    magic, version, count = struct.unpack_from(">4sII", data)
    if magic != b"DIRC" or version not in (2, 3, 4):
        return
    at = 12
    name = b""
    for _ in range(count):
        flags_at = at + 40 + oid_bytes
        (flags,) = struct.unpack_from(">H", data, flags_at)
        place = flags_at + 2
        more = 0
        if flags & _EXTENDED:
            (more,) = struct.unpack_from(">H", data, place)
            place += 2
        strip = 0
        if version == 4:
            strip, place = _varint(data, place)
        end = data.index(b"\0", place)
        name = name[: len(name) - strip] + data[place:end] if version == 4 else data[place:end]
        yield _Place(os.fsdecode(name), at, flags_at, flags, more)
        at = end + 1 if version == 4 else at + ((end - at + 8) & ~7)


def looking(data: bytes, oid_bytes: int, spared: Collection[str]) -> bytes:
    """The same index in which git is told to look at every file but those ``spared``; as it is where none is hidden, or
    where its form is not known here.
    """
    made = bytearray(data)
    try:
        for one in _places(data, oid_bytes):
            if one.flags & _ASSUMED:
                struct.pack_into(">H", made, one.flags_at, one.flags & ~_ASSUMED)
            if one.skip and one.path not in spared:
                struct.pack_into(">H", made, one.flags_at + 2, one.more & ~_SKIP)
    except (ValueError, IndexError, struct.error):
        return data
    if bytes(made) == data:
        return data
    if any(made[-oid_bytes:]):  # zeros: whoever wrote it left the sum out
        sum_of = hashlib.sha256 if oid_bytes == 32 else hashlib.sha1
        made[-oid_bytes:] = sum_of(made[:-oid_bytes], usedforsecurity=False).digest()
    return bytes(made)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """(number, place behind it) in the form of git's index version 4."""
    number = data[at] & 0x7F
    while data[at] & 0x80:
        at += 1
        number = ((number + 1) << 7) | (data[at] & 0x7F)
    return number, at + 1
