"""What the vault knows of one name in a tree, and how two states differ. Pure; standard library only.

A *state* is ``{path: value}``. Paths are bytes, relative, with the root's letter first (``w/`` the worktree, ``g/`` the
private git folder, ``o/`` its objects); a root itself is its letter and the stroke. A value is 68 bytes: a stamp (what
lstat says) and the SHA-256 of the content, packed because a session of ten thousand files must not cost ten megabytes.
"""

from __future__ import annotations

import hashlib
import os
import stat
import struct
import zlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

State = dict[bytes, bytes]
Delta = dict[bytes, bytes | None]
"""Changed names and their new values; None = gone."""

STAMP = struct.Struct("<IQQqq")
"""st_mode, st_ino, st_size, st_mtime_ns, st_ctime_ns."""
INODE = slice(4, 12)
"""Where st_ino stands in it, for a comparison without unpacking."""
_LENGTH = struct.Struct("<I")
NO_CONTENT = bytes(32)
"""In place of a digest: a folder, pipe, socket or device."""
LEFT_OUT = b"\xff" * 32
"""In place of a digest: the content is not kept (too large, unreadable)."""
_NEVER = -1


class DamagedTable(ValueError):
    """Bytes that are no table of ours."""


def stamp(info: os.stat_result) -> bytes:
    """Everything that changes when the thing behind a name does; nobody without a clock of his own can set
    ``ctime``.
    """
    return STAMP.pack(info.st_mode, info.st_ino, info.st_size, info.st_mtime_ns, info.st_ctime_ns)


def untrusted(value: bytes) -> bytes:
    """The value with a stamp that no look ever equals: it was read too soon after a change to be sure of it."""
    mode, ino, size, mtime, _ = STAMP.unpack_from(value)
    return STAMP.pack(mode, ino, size, mtime, _NEVER) + value[STAMP.size :]


@dataclass(frozen=True, slots=True)
class Entry:
    """A value, unpacked. ``digest`` is 32 bytes, `NO_CONTENT` or `LEFT_OUT`."""

    mode: int
    ino: int
    size: int
    mtime_ns: int
    ctime_ns: int
    digest: bytes

    @classmethod
    def of(cls, value: bytes) -> Entry:
        """Unpack a value."""
        mode, ino, size, mtime_ns, ctime_ns = STAMP.unpack_from(value)
        return cls(mode, ino, size, mtime_ns, ctime_ns, value[STAMP.size :])

    @property
    def kind(self) -> int:
        """The file type bits of the mode."""
        return stat.S_IFMT(self.mode)

    @property
    def is_folder(self) -> bool:
        return stat.S_ISDIR(self.mode)


def same(old: bytes, new: bytes) -> bool:
    """True when two values stand for the same thing to whoever looks: kind, permissions and content. Times do not
    count, but for what is left out: there they are all that is known, and one that was too young to be believed is
    never the same.
    """
    a = Entry.of(old)
    b = Entry.of(new)
    if a.digest == LEFT_OUT and _NEVER in (a.ctime_ns, b.ctime_ns):
        return False
    if old == new:
        return True
    if a.kind != b.kind or a.digest != b.digest:
        return False
    if not stat.S_ISLNK(a.mode) and stat.S_IMODE(a.mode) != stat.S_IMODE(b.mode):
        return False
    if a.digest == LEFT_OUT:
        return (a.ino, a.size, a.mtime_ns, a.ctime_ns) == (b.ino, b.size, b.mtime_ns, b.ctime_ns)
    return True


@dataclass(frozen=True, slots=True)
class Change:
    """How one name differs: ``appeared``, ``vanished``, ``content``, ``mode`` or ``kind``."""

    path: bytes
    how: str


def differences(old: Mapping[bytes, bytes | None], new: Mapping[bytes, bytes | None]) -> list[Change]:
    """Every name whose thing is another one in ``new``, sorted by name."""
    found: list[Change] = []
    for path in sorted(old.keys() | new.keys()):
        before = old.get(path)
        after = new.get(path)
        if before is None and after is not None:
            found.append(Change(path, "appeared"))
        elif before is not None and after is None:
            found.append(Change(path, "vanished"))
        elif before is not None and after is not None and not same(before, after):
            found.append(Change(path, _how(Entry.of(before), Entry.of(after))))
    return found


def _how(before: Entry, after: Entry) -> str:
    if before.kind != after.kind:
        return "kind"
    return "content" if before.digest != after.digest or before.digest == LEFT_OUT else "mode"


def sentence(change: Change) -> str:
    """One difference in words for a person; the name is untrusted text."""
    name = names([change.path], 1)[0] or "the folder itself"
    words = {
        "appeared": "did not exist and now does",
        "vanished": "is gone",
        "content": "has other content",
        "mode": "has other permissions",
        "kind": "is another kind of thing (file, folder, link)",
    }
    return f"{name} {words[change.how]}"


_MADE = frozenset(
    {
        b"node_modules",
        b"__pycache__",
        b".venv",
        b".tox",
        b".nox",
        b".mypy_cache",
        b".ruff_cache",
        b".pytest_cache",
        b".hypothesis",
        b".cache",
    }
)
"""Folders that tools fill by themselves: what changes in them says that something ran, not that something was done."""


def is_work(path: bytes) -> bool:
    """True for a name whose change is progress: a file of the worktree that no tool makes by itself, or where HEAD or a
    branch of the agent's is (a commit).
    """
    letter, _, rest = path.partition(b"/")
    if letter == b"g":
        return rest == b"HEAD" or rest.startswith(b"refs/heads/")
    return letter == b"w" and bool(rest) and _MADE.isdisjoint(rest.split(b"/"))


def apply(state: State, delta: Mapping[bytes, bytes | None]) -> None:
    """Bring ``state`` forward by one delta."""
    for path, value in delta.items():
        if value is None:
            state.pop(path, None)
        else:
            state[path] = value


def encode(delta: Mapping[bytes, bytes | None]) -> bytes:
    """A table of changed names, compressed."""
    parts: list[bytes] = []
    for path, value in delta.items():
        parts += (_LENGTH.pack(len(path)), path, b"+" + value if value is not None else b"-")
    return zlib.compress(b"".join(parts), 1)


def decode(data: bytes, limit: int = 1 << 31) -> Delta:
    """The table again. Raises DamagedTable."""
    try:
        raw = zlib.decompressobj().decompress(data, limit)
    except zlib.error as exc:
        raise DamagedTable(f"a table of names does not unpack: {exc}") from exc
    found: Delta = {}
    at = 0
    size = len(raw)
    width = STAMP.size + 32
    while at < size:
        if at + 4 > size:
            raise DamagedTable("a table of names ends in the middle")
        start = at + 4
        end = start + _LENGTH.unpack_from(raw, at)[0]
        path = raw[start:end]
        sign = raw[end : end + 1]
        at = end + 1
        if sign == b"+":
            found[path] = raw[at : at + width]
            at += width
        elif sign == b"-":
            found[path] = None
        else:
            raise DamagedTable("a table of names holds neither a value nor its end")
        if at > size:
            raise DamagedTable("a table of names ends in the middle")
    return found


def chain(before: bytes, table: bytes) -> bytes:
    """The hash that names a snapshot: 16 bytes over the one before and the table of what changed."""
    return hashlib.sha256(b"watchfloor/vault/1\0" + before + table).digest()[:16]


def names(paths: Iterable[bytes], limit: int) -> list[str]:
    """The first names for a record, without the root's letter, readable in any encoding."""
    listed = sorted(paths)[:limit]
    return [path.partition(b"/")[2].decode("utf-8", "backslashreplace") for path in listed]
