"""Reading what the user keeps: a named pipe or a device in its place would hold up everybody who waits for the reader.
Standard library only.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

LIMIT = 4 << 20


def read(path: Path, limit: int = LIMIT) -> bytes:
    """The bytes of the regular file that ``path`` is or leads to. Raises OSError, for one that is too large too."""
    fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is no regular file", str(path))
        with open(fd, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    finally:
        os.close(fd)
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"it has more than {limit:,} bytes", str(path))
    return data


def text(path: Path, limit: int = LIMIT) -> str:
    """The same as text. Raises OSError, UnicodeDecodeError."""
    return read(path, limit).decode("utf-8")
