"""The newest lines that a running call printed, as its keeper spools them."""

from __future__ import annotations

import os
import re
from pathlib import Path

from harness.eventlog.framing import BadLine
from harness.eventlog.regular_files import descriptor
from harness.reports import verdicts

LINES = 3
_BYTES = 4096
_NAME = re.compile(r"c\d+\.\d+-\d+")


def newest_output(spool: Path, name: str) -> tuple[str, ...]:
    """The last lines of ``<name>.out``, raw; none when the file is not (or no longer) there or is no ordinary file."""
    if not _NAME.fullmatch(name):
        return ()
    try:
        fd = descriptor(spool / f"{name}.out")
    except (OSError, BadLine):
        return ()
    try:
        size = os.fstat(fd).st_size
        data = os.pread(fd, _BYTES, max(0, size - _BYTES))
    except OSError:
        return ()
    finally:
        os.close(fd)
    if size > _BYTES:
        data = data[data.find(b"\n") + 1 :]
    return verdicts.tail(data.decode("utf-8", "replace"), LINES)
