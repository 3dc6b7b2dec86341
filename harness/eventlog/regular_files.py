"""Opening what belongs to a log: only regular files, so that no name in its folder makes a reader wait.

Standard library only.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

from harness.eventlog.framing import BadLine

_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_NOCTTY | os.O_CLOEXEC
_OTHER = {errno.ELOOP: "a symbolic link", errno.ENXIO: "a socket or a device"}
_KINDS = {stat.S_IFIFO: "a named pipe", stat.S_IFDIR: "a folder"}


def descriptor(path: Path) -> int:
    """A descriptor of the regular file ``path``, which is not followed.

    Raises BadLine when it is something else, OSError.
    """
    try:
        fd = os.open(path, _READ)
    except OSError as exc:
        if exc.errno in _OTHER:
            raise BadLine(f"{path.name} is {_OTHER[exc.errno]}, not a file") from exc
        raise
    mode = os.fstat(fd).st_mode
    if stat.S_ISREG(mode):
        return fd
    os.close(fd)
    raise BadLine(f"{path.name} is {_KINDS.get(stat.S_IFMT(mode), 'a device')}, not a file")


def opened(path: Path, buffering: int = -1) -> BinaryIO:
    """The same as a file object. Raises BadLine, OSError."""
    return os.fdopen(descriptor(path), "rb", buffering)
