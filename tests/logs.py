"""A log as a kill leaves it, and what a session's checks said before the work."""

from __future__ import annotations

import shutil
from pathlib import Path

from harness.eventlog.writer import LogWriter
from harness.events import types as t


def left_by_a_kill(log: LogWriter, folder: Path) -> None:
    """Put what is on the disk now in the place of ``folder``, whose writer takes its leave elsewhere."""
    copy = folder.with_name(f"{folder.name} as it was")
    shutil.copytree(folder, copy)
    log.close()
    shutil.rmtree(folder)
    copy.rename(folder)


def checked_before(*commands: str, passed: bool | None = False) -> list[t.CheckedBefore]:
    """What these commands said before the work."""
    return [t.CheckedBefore(call_id="c0.0", command=one, passed=passed) for one in commands]
