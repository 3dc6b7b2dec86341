"""Reading what the user keeps: a named pipe or a device in its place would hold up everybody who waits for the reader.
Standard library only.
"""

from __future__ import annotations

import errno
import os
import select
import stat
from pathlib import Path

from harness.linux import safe_files

LIMIT = 4 << 20
_PIECE = 1 << 16
_TOO_LARGE = "it has more than {:,} bytes"


def read(path: Path, limit: int = LIMIT) -> bytes:
    """The bytes of the regular file that ``path`` is or leads to. Raises OSError, for one that is too large too."""
    seen = os.open(path, os.O_PATH | os.O_CLOEXEC)
    return safe_files.bounded(safe_files.opened(seen, str(path)), limit, str(path))


def text(path: Path, limit: int = LIMIT) -> str:
    """The same as text, without the mark that some editors put first. Raises OSError, UnicodeDecodeError."""
    return read(path, limit).decode("utf-8-sig")


def given(path: str, limit: int) -> bytes:
    """What somebody named on a command line, ``-`` for standard input: a file, or a pipe that has a writer (a shell's
    ``<(…)``), which is waited for. Raises OSError, also for more than ``limit`` bytes and a pipe that has no writer.
    """
    fd = os.dup(0) if path == "-" else os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    found = bytearray()
    try:
        while len(found) <= limit:
            try:
                piece = os.read(fd, min(_PIECE, limit + 1 - len(found)))
            except BlockingIOError:
                select.select([fd], [], [])
                continue
            if not piece:
                break
            found += piece
        deserted = not found and path != "-" and stat.S_ISFIFO(os.fstat(fd).st_mode)
    finally:
        os.close(fd)
    if deserted:
        raise OSError(errno.EPIPE, "it is a pipe into which nobody writes", path)
    if len(found) > limit:
        raise OSError(errno.EFBIG, _TOO_LARGE.format(limit), path)
    return bytes(found)


def exposed(path: Path, bits: int) -> Path | None:
    """What lets every user of this machine do with this file what ``bits`` say (of a mode, of others): the file, or a
    folder on the way to it in which names may be replaced. None when nothing does, or when there is no such file.
    """
    try:
        real = path.resolve(strict=True)
        way = [(folder, folder.stat().st_mode) for folder in reversed(real.parents)]
        own = real.stat().st_mode
    except (OSError, RuntimeError):
        return None
    for folder, mode in way:
        if not mode & stat.S_IXOTH:
            return None
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            return folder
    return real if own & bits else None
