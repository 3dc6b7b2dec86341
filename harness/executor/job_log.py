"""What a job printed, bounded on disk however much that is: its beginning and its newest part, in pieces of one size.
Standard library only.

Byte ``n`` of the output stands in the piece ``n // PIECE``, named ``<base>.<number>.out``, so every offset means the
same byte for as long as it is kept.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NamedTuple

PIECE = 1 << 20
LEAST = 3
"""Pieces that are kept at least: the first, the newest, and the one before that."""
FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


class Part(NamedTuple):
    """Bytes of an output from ``offset`` on; ``missing`` of them before it are not kept any more."""

    offset: int
    data: bytes
    missing: int

    @property
    def end(self) -> int:
        return self.offset + len(self.data)


class Writer:
    """The one writer of a job's output, which keeps about ``limit`` bytes of it."""

    def __init__(self, base: Path, limit: int) -> None:
        """Raises OSError."""
        self._base = base
        self._most = max(LEAST, limit // PIECE)
        self._number = -1
        self._file = -1
        self.total = 0
        """Bytes that the job printed and that reached the disk, whether they are kept still or not."""
        self.lost = 0
        """Bytes that the disk had no room for."""
        self._open(0)

    def append(self, data: bytes) -> int:
        """Keep the next bytes; how many of them the disk took. Raises OSError for anything but a full disk."""
        view = memoryview(data)
        while view:
            at = self.total - self._number * PIECE
            try:
                if at == PIECE:
                    self._open(self._number + 1)
                    continue
                taken = os.write(self._file, view[: PIECE - at])
            except OSError as exc:
                if exc.errno not in FULL:
                    raise
                self.lost += len(view)
                break
            self.total += taken
            view = view[taken:]
        return len(data) - len(view)

    def _open(self, number: int) -> None:
        new = os.open(piece(self._base, number), os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        if self._file >= 0:
            os.close(self._file)
        self._file = new
        self._number = number
        old = number - self._most + 1
        if old > 0:
            piece(self._base, old).unlink(missing_ok=True)

    def close(self) -> None:
        os.close(self._file)


def piece(base: Path, number: int) -> Path:
    return base.with_name(f"{base.name}.{number}.out")


def pieces(base: Path) -> list[int]:
    """The numbers of the pieces that are kept, in order; none when there is no such output."""
    try:
        names = os.listdir(base.parent)
    except FileNotFoundError:
        return []
    found = (name.removeprefix(f"{base.name}.").removesuffix(".out") for name in names if _is_piece(base, name))
    return sorted(int(number) for number in found if number.isascii() and number.isdigit())


def _is_piece(base: Path, name: str) -> bool:
    return name.startswith(f"{base.name}.") and name.endswith(".out")


def read(base: Path, offset: int, most: int) -> Part:
    """What is kept from ``offset`` on, at most ``most`` bytes of it and all without a gap. Raises OSError."""
    for number in pieces(base):
        if offset < (number + 1) * PIECE:
            start = max(offset, number * PIECE)
            if data := _some(base, number, start, most):
                return Part(start, data, start - offset)
    return Part(offset, b"", 0)


def _some(base: Path, number: int, start: int, most: int) -> bytes:
    try:
        with open(piece(base, number), "rb") as file:
            file.seek(start - number * PIECE)
            return file.read(most)
    except FileNotFoundError:  # the writer let it go just now
        return b""


def _size(base: Path, number: int) -> int:
    try:
        return piece(base, number).stat().st_size
    except FileNotFoundError:
        return 0


def tail(base: Path, most: int) -> Part:
    """The newest ``most`` bytes, or as many as the newest two pieces hold. Raises OSError."""
    kept = pieces(base)
    data = b""
    start = 0
    for number in reversed(kept[-2:]):
        if data and start != (number + 1) * PIECE:
            break
        start = number * PIECE + max(0, _size(base, number) - (most - len(data)))
        data = _some(base, number, start, PIECE) + data
    skip = max(0, len(data) - most)
    return Part(start + skip, data[skip:], start + skip)


def whole(base: Path) -> bytes:
    """All that is kept, with a line where something is missing. Raises OSError."""
    parts: list[bytes] = []
    at = 0
    while (part := read(base, at, PIECE)).data:
        if part.missing:
            parts.append(f"\n[… {part.missing} bytes are not kept …]\n".encode())
        parts.append(part.data)
        at = part.end
    return b"".join(parts)


__all__ = ["LEAST", "PIECE", "Part", "Writer", "piece", "pieces", "read", "tail", "whole"]
