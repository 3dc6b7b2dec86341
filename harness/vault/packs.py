"""Where snapshots are stored: append-only pack files, each snapshot written and synced as one piece. Standard library
only.

``NNNNNN.pack`` holds frames: one byte of kind, 8 bytes of length, the payload. ``B`` is a piece of content (SHA-256,
one byte of encoding, bytes), ``T`` a compressed table of changed names, ``S`` the end of a snapshot (JSON and its CRC).
A snapshot exists when its ``S`` does; what follows the last one is cut away at the next opening. The first snapshot of
a pack names everything, so that older packs can be dropped.
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from harness.linux import durable
from harness.vault import entries
from harness.vault.entries import Delta, State

_FRAME = struct.Struct("<cQ")
_BLOB = b"B"
_TABLE = b"T"
_SNAPSHOT = b"S"
_PLAIN = b"0"
_DEFLATED = b"z"
_HEAD = 33
_FLUSH = 4 << 20
_INCOMPRESSIBLE = 64


class DamagedPack(Exception):
    """A pack cannot be read; the message names file and place."""


@dataclass(frozen=True, slots=True)
class Mark:
    """One snapshot: its number, its hash, what it was taken for, and where its table is."""

    number: int
    chain: bytes
    label: str
    """The call before which it was taken (or ``start``, ``undo …``)."""
    ts: str
    changed: int
    """Names that differ from the snapshot before."""
    left_out: int
    """Things in the tree whose content is not kept."""
    whole: bool
    """True when its table names the whole tree."""
    work: int = 0
    """Of ``changed``, those that somebody worked on: see `entries.is_work`."""
    pack: int = 0
    table_at: int = 0
    table_size: int = 0

    @property
    def id(self) -> str:
        """The snapshot's name in records."""
        return f"s{self.number}.{self.chain.hex()}"


class Packs:
    """The packs of one session. Not safe for two processes: the vault's own process is the only one that writes."""

    def __init__(self, folder: Path) -> None:
        """Open what is there and cut an unfinished tail. Raises OSError, DamagedPack."""
        folder.mkdir(mode=0o700, exist_ok=True)
        self._folder = folder
        self.marks: list[Mark] = []
        self._where: dict[bytes, tuple[int, int]] = {}
        self._fds: dict[int, int] = {}
        self.size = 0
        """Bytes of the pack that is written to."""
        self._ready: list[bytes] = []
        self._ready_bytes = 0
        self._pending = 0
        self._new: dict[bytes, tuple[int, int]] = {}
        numbers = sorted(int(p.stem) for p in folder.glob("*.pack") if p.stem.isdigit())
        for stale in folder.glob(".*.new"):
            stale.unlink()
        self._current = numbers[-1] if numbers else 1
        for number in numbers:
            self._open(number, last=number == self._current)
        if not numbers:
            self._fds[1] = self._create(self._path(1))

    def close(self) -> None:
        """Let go of the files."""
        for fd in self._fds.values():
            os.close(fd)
        self._fds.clear()

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:06d}.pack"

    @staticmethod
    def _create(path: Path) -> int:
        return os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)

    # -- reading -----------------------------------------------------------------------------------

    def _open(self, number: int, *, last: bool) -> None:
        fd = self._create(self._path(number))
        self._fds[number] = fd
        end = 0
        found: dict[bytes, tuple[int, int]] = {}
        table = (0, 0)
        for kind, at, size in self._frames(fd):
            if kind == _BLOB:
                found[os.pread(fd, 32, at)] = (number, at)
            elif kind == _TABLE:
                table = (at, size)
            elif (mark := self._mark(fd, number, at, size, table)) is not None:
                self._where |= found
                found.clear()
                if self.marks and self.marks[-1].number == mark.number:
                    self.marks.pop()  # said again at the beginning of a newer pack
                self.marks.append(mark)
                end = at + size
            else:
                break
        if last:
            self.size = end
            if os.fstat(fd).st_size > end:
                os.ftruncate(fd, end)

    @staticmethod
    def _frames(fd: int) -> Iterator[tuple[bytes, int, int]]:
        at = 0
        total = os.fstat(fd).st_size
        while at + _FRAME.size <= total:
            kind, size = _FRAME.unpack(os.pread(fd, _FRAME.size, at))
            at += _FRAME.size
            if kind not in (_BLOB, _TABLE, _SNAPSHOT) or at + size > total:
                return
            yield kind, at, size
            at += size

    @staticmethod
    def _mark(fd: int, pack: int, at: int, size: int, table: tuple[int, int]) -> Mark | None:
        data = os.pread(fd, size, at)
        try:
            if zlib.crc32(data[:-4]) != struct.unpack("<I", data[-4:])[0]:
                return None
            value: dict[str, Any] = json.loads(data[:-4])
            return Mark(
                number=value["n"],
                chain=bytes.fromhex(value["chain"]),
                label=value["label"],
                ts=value["ts"],
                changed=value["changed"],
                left_out=value["left_out"],
                whole=value["whole"],
                work=value.get("work", 0),
                pack=pack,
                table_at=table[0],
                table_size=table[1],
            )
        except (ValueError, KeyError, struct.error):
            return None

    def table(self, mark: Mark) -> Delta:
        """What changed with one snapshot. Raises DamagedPack."""
        data = os.pread(self._fds[mark.pack], mark.table_size, mark.table_at)
        try:
            return entries.decode(data)
        except entries.DamagedTable as exc:
            raise DamagedPack(f"{self._path(mark.pack)} at byte {mark.table_at}: {exc}") from exc

    def state(self, number: int | None = None) -> State:
        """The whole tree as of a snapshot, by default the newest. Raises KeyError (expired or unknown), DamagedPack."""
        upto = [m for m in self.marks if number is None or m.number <= number]
        if number is not None and (not upto or upto[-1].number != number):
            raise KeyError(number)
        state: State = {}
        start = max((i for i, m in enumerate(upto) if m.whole), default=0)
        for mark in upto[start:]:
            entries.apply(state, self.table(mark))
        return state

    def find(self, snapshot: str) -> Mark | None:
        """The snapshot of that id, or None when it has expired or never was."""
        return next((m for m in reversed(self.marks) if m.id == snapshot), None)

    def has(self, digest: bytes) -> bool:
        """True when this content is stored already."""
        return digest in self._where or digest in self._new

    def content(self, digest: bytes) -> bytes:
        """Stored content, verified. Raises DamagedPack."""
        try:
            pack, at = self._where[digest]
        except KeyError as exc:
            raise DamagedPack(f"content {digest.hex()[:16]} is in no pack") from exc
        fd = self._fds[pack]
        size = _FRAME.unpack(os.pread(fd, _FRAME.size, at - _FRAME.size))[1]
        data = os.pread(fd, size, at)
        try:
            raw = zlib.decompress(data[_HEAD:]) if data[32:33] == _DEFLATED else data[_HEAD:]
        except zlib.error as exc:
            raise DamagedPack(f"{self._path(pack)} at byte {at}: {exc}") from exc
        if hashlib.sha256(raw).digest() != digest:
            raise DamagedPack(f"{self._path(pack)} at byte {at}: the content is not what was stored")
        return raw

    # -- writing -----------------------------------------------------------------------------------

    def put(self, content: bytes) -> bytes:
        """Add content to the snapshot that is being made; its digest. Raises OSError."""
        digest = hashlib.sha256(content).digest()
        if not self.has(digest):
            packed = zlib.compress(content, 1) if len(content) > _INCOMPRESSIBLE else content
            shorter = len(packed) < len(content)
            self._put(digest, _DEFLATED if shorter else _PLAIN, packed if shorter else content)
        return digest

    def _put(self, digest: bytes, encoding: bytes, data: bytes) -> None:
        place = self.size + self._pending + self._ready_bytes + _FRAME.size
        self._new[digest] = (self._current, place)
        self._frame(_BLOB, digest + encoding + data)

    def _frame(self, kind: bytes, payload: bytes) -> None:
        self._ready += (_FRAME.pack(kind, len(payload)), payload)
        self._ready_bytes += _FRAME.size + len(payload)
        if self._ready_bytes > _FLUSH:
            self._flush()

    def _flush(self) -> None:
        fd = self._fds[self._current]
        data = memoryview(b"".join(self._ready))
        self._ready = []
        self._ready_bytes = 0
        while data:
            written = os.pwrite(fd, data, self.size + self._pending)
            self._pending += written
            data = data[written:]

    def finish(self, delta: Delta, mark: Mark) -> Mark:
        """Make the snapshot durable. On an error nothing of it stays. Raises OSError."""
        try:
            table = entries.encode(delta)
            at = self.size + self._pending + self._ready_bytes + _FRAME.size
            self._frame(_TABLE, table)
            fields = {
                "n": mark.number,
                "chain": mark.chain.hex(),
                "label": mark.label,
                "ts": mark.ts,
                "changed": mark.changed,
                "left_out": mark.left_out,
                "whole": mark.whole,
                "work": mark.work,
            }
            body = json.dumps(fields, ensure_ascii=True).encode()
            self._frame(_SNAPSHOT, body + struct.pack("<I", zlib.crc32(body)))
            self._flush()
            os.fdatasync(self._fds[self._current])
        except OSError:
            self.abandon()
            raise
        self.size += self._pending
        self._pending = 0
        self._where |= self._new
        self._new.clear()
        mark = replace(mark, pack=self._current, table_at=at, table_size=len(table))
        self.marks.append(mark)
        return mark

    def abandon(self) -> None:
        """Forget what was put since the last snapshot."""
        self._ready = []
        self._ready_bytes = 0
        self._pending = 0
        self._new.clear()
        os.ftruncate(self._fds[self._current], self.size)

    # -- room --------------------------------------------------------------------------------------

    @property
    def stored(self) -> int:
        """Bytes of all packs."""
        return sum(os.fstat(fd).st_size for fd in self._fds.values())

    def turn_over(self, state: State) -> None:
        """Begin a new pack with all that the newest snapshot needs, and drop every pack but the one before it. Raises
        OSError, DamagedPack.

        Interrupted anywhere, the packs that stood before stand still.
        """
        last = self.marks[-1]
        old = self._current
        number = self._current + 1
        temporary = self._folder / f".{number:06d}.new"
        temporary.unlink(missing_ok=True)
        kept_size = self.size
        kept_where = dict(self._where)
        self._current = number
        self.size = 0
        self._fds[number] = self._create(temporary)
        try:
            for value in state.values():
                digest = entries.Entry.of(value).digest
                if digest not in (entries.NO_CONTENT, entries.LEFT_OUT) and digest not in self._new:
                    self._copy(digest)
            self.finish(dict(state), replace(last, whole=True))
            temporary.rename(self._path(number))
            durable.sync_folder(self._folder)
        except BaseException:
            os.close(self._fds.pop(number))
            temporary.unlink(missing_ok=True)
            self._current = old
            self.size = kept_size
            self._where = kept_where
            self._ready = []
            self._ready_bytes = 0
            self._pending = 0
            self._new.clear()
            if self.marks[-1].pack == number:
                self.marks.pop()
            raise
        self.marks = [m for m in self.marks if m.number != last.number or m.pack == number]
        for gone in [n for n in self._fds if n < old]:
            os.close(self._fds.pop(gone))
            self._path(gone).unlink(missing_ok=True)
            self.marks = [m for m in self.marks if m.pack != gone]
            self._where = {d: place for d, place in self._where.items() if place[0] != gone}

    def _copy(self, digest: bytes) -> None:
        pack, at = self._where[digest]
        fd = self._fds[pack]
        size = _FRAME.unpack(os.pread(fd, _FRAME.size, at - _FRAME.size))[1]
        data = os.pread(fd, size, at)
        self._put(digest, data[32:33], data[_HEAD:])
