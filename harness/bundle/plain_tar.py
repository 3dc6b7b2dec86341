"""A tar of plain files in one form only: a header says a name and a size, and whoever writes the same writes the same.

Nothing else that a tar may hold is interpreted: no extended header, no long name, no sparse file, no link. So what is
read of a tar is never more than its bytes, whoever made it. Standard library only.
"""

from __future__ import annotations

import re
import tarfile
from collections.abc import Iterator
from hashlib import sha256
from typing import IO

from harness.eventlog.framing import LogError

BLOCK = 512
CHUNK = 1 << 20
_SIZE = re.compile(rb"[0-7]{11}\0")
_KINDS = {
    b"x": "an extended header (PAX)",
    b"g": "a global extended header (PAX)",
    b"L": "a long name (GNU)",
    b"K": "a long name of a link (GNU)",
    b"S": "a sparse file (GNU)",
    b"1": "a hard link",
    b"2": "a symbolic link",
    b"3": "a device",
    b"4": "a device",
    b"5": "a folder",
    b"6": "a named pipe",
    b"7": "a contiguous file",
}


class NotPlain(LogError):
    """The file is no tar of this form; the message says what of it is not."""


def header(name: str, size: int) -> bytes:
    """The block before a file of so many bytes. Raises ValueError on a name or a size that no such tar has."""
    info = tarfile.TarInfo(name)
    info.size = size
    info.mode = 0o600
    return info.tobuf(tarfile.USTAR_FORMAT, "ascii", "strict")


class Reader:
    """Reads once, from the beginning on: `member`, then all of its `content`, then the next one.

    ``left`` are the bytes that were not read yet, of the size that the file had at first.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._all = sha256()
        self.left = file.seek(0, 2)
        self._size = self.left
        file.seek(0)

    @property
    def seal(self) -> str:
        """SHA-256 of all that was read, in hex."""
        return self._all.hexdigest()

    def read(self, size: int) -> bytes:
        """Exactly so many bytes. Raises NotPlain when there are fewer."""
        data = self._file.read(size) if size <= self.left else b""
        if len(data) != size:
            raise NotPlain(f"it ends at byte {self._size - self.left:,}, where {size:,} more have to be")
        self.left -= size
        self._all.update(data)
        return data

    def member(self) -> tuple[str, int]:
        """Name and size of the file that comes next. Raises NotPlain."""
        at = self._size - self.left
        block = self.read(BLOCK)
        raw = block[:100].rstrip(b"\0")
        size = int(block[124:135], 8) if _SIZE.fullmatch(block[124:136]) else -1
        name = raw.decode("ascii", "replace")
        if size < 0 or not raw.isascii() or block != header(name, size):
            kind = _KINDS.get(block[156:157], "in a header that is damaged, or that is not one of ours")
            raise NotPlain(f"at byte {at:,} it holds {name!r}, {kind}")
        if size + -size % BLOCK > self.left:
            raise NotPlain(f"it holds {name!r} of {size:,} bytes, and only {self.left:,} are left in it")
        return name, size

    def content(self, size: int) -> Iterator[bytes]:
        """The bytes of the member that was named last, in pieces. Raises NotPlain."""
        left = size
        while left:
            data = self.read(min(CHUNK, left))
            left -= len(data)
            yield data
        self.read(-size % BLOCK)
