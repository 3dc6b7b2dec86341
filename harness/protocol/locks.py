"""Who still lives, by the lock files that every process of ours holds for its life. Standard library only."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from harness.protocol.paths import Folders


def held(path: Path) -> bool:
    """True while somebody holds this lock file (a moment's blocking look)."""
    try:
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(fd)
    return False


def holder(path: Path) -> int:
    """The process that holds this lock file by the kernel's table of locks; 0 when nobody does or the table does not
    say.
    """
    try:
        inode = str(path.lstat().st_ino)
        table = Path("/proc/locks").read_text("ascii", "replace").splitlines()
    except OSError:
        return 0
    for line in table:
        fields = line.split()
        if len(fields) >= 6 and fields[1] == "FLOCK" and fields[5].rpartition(":")[2] == inode and fields[4].isdigit():
            return int(fields[4])
    return 0


def kept(folders: Folders) -> list[str]:
    """Ids of the sessions whose keeper lives."""
    try:
        names = sorted(os.listdir(folders.sessions))
    except OSError:
        return []
    return [name for name in names if held(folders.session(name).lock)]
