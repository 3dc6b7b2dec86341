"""Which files living processes can write through mappings, of which no hint tells. Standard library only."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

from harness.linux.proc import descendants

_MOST = 400
"""Processes that are looked at; of more it is not known."""


def shared(above: Iterable[int]) -> set[int] | None:
    """The inodes of files that these processes, and those below them, have mapped together with their files; None when
    one of them hides it.
    """
    pids = {pid for top in above for pid in (top, *descendants(top))}
    if len(pids) > _MOST:
        return None
    found: set[int] = set()
    try:
        for pid in pids:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found |= _of(Path(f"/proc/{pid}/maps").read_bytes())
    except OSError:
        return None
    return found


def _of(maps: bytes) -> set[int]:
    """As in ``7f… rw-s 00000000 08:01 1234 /path``; a private mapping never reaches its file."""
    rows = (line.split(None, 5) for line in maps.split(b"\n"))
    return {int(row[4]) for row in rows if len(row) > 4 and row[1][3:4] == b"s" and row[4] != b"0"}
