"""Who still lives, by the lock files that every process of ours holds for its life. Standard library only."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

from harness.protocol.paths import Folders


def take(path: Path, wait_s: float) -> int | None:
    """Make this lock file and hold it until the process ends, or closes the descriptor that comes back; None when
    somebody holds it for longer than ``wait_s`` seconds: who only looks has it for a moment, who is dying for a little
    more. Raises OSError.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    deadline = time.monotonic() + wait_s
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(fd)
                return None
            time.sleep(0.02)
        else:
            return fd


def held(path: Path) -> bool:
    """True while somebody holds this lock file (a moment's blocking look), and not while somebody else looks."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def holders(path: Path) -> list[int]:
    """The processes that hold this lock file, by the kernel's table of locks; none when the table does not say."""
    try:
        inode = str(path.lstat().st_ino)
        table = Path("/proc/locks").read_text("ascii", "replace").splitlines()
    except OSError:
        return []
    rows = [fields for line in table if len(fields := line.split()) >= 6]
    return [int(f[4]) for f in rows if f[1] == "FLOCK" and f[5].rpartition(":")[2] == inode and f[4].isdigit()]


def holder(path: Path) -> int:
    """The first of them; 0 when there is none."""
    return next(iter(holders(path)), 0)


def kept(folders: Folders) -> list[str]:
    """Ids of the sessions whose keeper lives."""
    try:
        names = sorted(os.listdir(folders.sessions))
    except OSError:
        return []
    return [name for name in names if held(folders.session(name).lock)]
