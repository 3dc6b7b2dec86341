"""Standard error that never fails: a log on a full disk loses lines, not its process. Standard library only."""

from __future__ import annotations

import contextlib
import io
import os
import sys


class Saying(io.TextIOBase):
    """Whole lines to a descriptor; what cannot be written is dropped."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._line = ""

    def write(self, text: str, /) -> int:
        lines, end, self._line = (self._line + text).rpartition("\n")
        if end:
            with contextlib.suppress(OSError):
                os.write(self._fd, (lines + end).encode("utf-8", "backslashreplace"))
        return len(text)

    def fileno(self) -> int:
        return self._fd


def say_without_fail() -> None:
    """Make this process's standard error one that never fails."""
    sys.stderr = Saying(2)
