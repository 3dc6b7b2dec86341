"""Whether the disk of the state folder is full: looked at from outside, since whoever waits for space can say nothing
about it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path

from harness.protocol.paths import Folders
from harness.supervisor.base.threads import at_home

LEAST = 512 * 1024
"""Bytes (or a fiftieth of a small disk); with less than this, records of ordinary size do not fit for sure any more."""
_PAUSE = 2.0


def full(folder: Path) -> str:
    """Why nothing more can be kept in ``folder``, in words; empty while there is room. Blocking."""
    try:
        found = os.statvfs(folder)
    except OSError:
        return ""
    if found.f_blocks and found.f_bavail * found.f_frsize < min(LEAST, found.f_blocks * found.f_frsize // 50):
        return f"the disk of {folder} is full"
    if found.f_files and not found.f_favail:
        return f"the disk of {folder} has no file left to give (inodes)"
    return ""


class Space:
    """``problem`` says what is full; empty while there is room."""

    def __init__(self, folders: Folders) -> None:
        self._folders = (folders.state, folders.sessions, folders.ledger, folders.worktrees)
        self.problem = ""

    async def run(self, changed: Callable[[], None]) -> None:
        """Look every few seconds, and call ``changed`` whenever the answer is another one, until cancelled."""
        while True:
            found = await at_home(lambda: next(filter(None, map(full, self._folders)), ""))
            if found != self.problem:
                self.problem = found
                changed()
            await asyncio.sleep(_PAUSE)
