"""The note in the runtime folder that a stop was asked for: nobody restarts the supervisors that it names. Standard
library only.

It names process ids: the last supervisor that served (as in ``supervisor.json``), and one that was being started.
A supervisor that serves later has another id, so the note needs no removal.
"""

from __future__ import annotations

import json
from pathlib import Path

from harness.linux import durable, own_file
from harness.protocol.paths import STOPPING


def _last(runtime: Path) -> int | None:
    """The process id of the last supervisor that served."""
    try:
        pid = json.loads(own_file.read(runtime / "supervisor.json"))["pid"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return pid if isinstance(pid, int) else None


def write(runtime: Path, starting: int | None = None) -> None:
    """Name the last supervisor, and the one that is ``starting``. Raises OSError."""
    pids = [pid for pid in (_last(runtime), starting) if pid is not None]
    durable.swap_file(runtime / STOPPING, " ".join(map(str, pids)).encode())


def names(runtime: Path, pid: int | None) -> bool:
    """True when the note names that supervisor."""
    try:
        return str(pid) in own_file.text(runtime / STOPPING).split()
    except (OSError, UnicodeDecodeError):
        return False


def names_last(runtime: Path) -> bool:
    """True when the last supervisor that served was asked to stop."""
    return names(runtime, _last(runtime))
