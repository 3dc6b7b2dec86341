"""Opening what belongs to a log: only regular files, so that no name in its folder makes a reader wait.

Standard library only.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import BinaryIO

from harness.eventlog.framing import BadLine
from harness.linux import safe_files


def descriptor(path: Path) -> int:
    """A descriptor of the regular file ``path``, which is not followed.

    Raises BadLine when it is something else, OSError.
    """
    try:
        return safe_files.regular(path)
    except safe_files.Unreadable as exc:
        raise BadLine(f"{path.name} {exc.strerror}") from exc


def opened(path: Path, buffering: int = -1) -> BinaryIO:
    """The same as a file object. Raises BadLine, OSError."""
    return os.fdopen(descriptor(path), "rb", buffering)
