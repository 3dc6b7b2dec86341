"""How far a log is known to reach, in a small file beside its segments: a log that was cut between two records looks
whole, this one knows better.

Standard library only. One line of fixed width is written over in place after each sync of the log. So it may lag behind
the log (it is synced itself only when the writer takes leave) and never names a record that is not durable. A line that
does not check anchors nothing.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from harness.eventlog.framing import BadLine
from harness.eventlog.regular_files import opened

FILE = "head"
_OPEN = b"open  "
_CLOSED = b"closed"
_LINE = re.compile(rb"1 ([0-9]{20}) ([0-9a-f]{32}) (open  |closed) ([0-9a-f]{8})\n")
_WIDTH = len(b"1 ") + 20 + 1 + 32 + 1 + 6 + 1 + 8 + 1


class Head(NamedTuple):
    """A record that was durable: its number, its chain hash, and whether the writer took leave just after it."""

    seq: int
    hash: bytes
    closed: bool


def encode(head: Head) -> bytes:
    """The file's one line."""
    body = b"1 %020d %b %b " % (head.seq, head.hash.hex().encode(), _CLOSED if head.closed else _OPEN)
    return body + b"%08x\n" % crc32(body)


def load(folder: Path) -> Head | None:
    """What the log in ``folder`` must reach; None when nothing says so (no file, an unfinished write).

    Raises OSError.
    """
    try:
        with opened(folder / FILE) as file:
            line = file.read(_WIDTH + 1)
    except (FileNotFoundError, BadLine):
        return None
    found = _LINE.fullmatch(line)
    if found is None or found[4] != b"%08x" % crc32(line[:-9]):
        return None
    return Head(int(found[1]), bytes.fromhex(found[2].decode()), found[3] == _CLOSED)


class Anchor:
    """Writes the file. A disk that refuses only lets it lag, which costs the knowledge and never a record."""

    def __init__(self, folder_fd: int) -> None:
        self._folder_fd = folder_fd
        self._fd = -1
        self._last: Head | None = None

    def put(self, head: Head) -> None:
        """Say that the log reaches this record, which is durable; one that is ``closed`` is on the disk when this
        returns.
        """
        if head == self._last:
            return
        with contextlib.suppress(OSError):
            if self._fd < 0:
                self._fd = os.open(
                    FILE,
                    os.O_WRONLY | os.O_CREAT | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOFOLLOW,
                    0o600,
                    dir_fd=self._folder_fd,
                )
            os.pwrite(self._fd, encode(head), 0)
            self._last = head
            if head.closed:
                os.fsync(self._fd)

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
