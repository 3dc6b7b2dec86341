"""Deleting what an agent made: without following a link, however deep it is, whatever its permissions say."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

DISCARDED = ".discarded-"


def discard(folder: Path) -> None:
    """Delete a folder and all in it. The name is gone first, so a deletion that dies leaves ``.discarded-NAME``, which
    the next one takes too, by either name.

    Folders are first moved up to one level, so that no depth is too deep. Raises OSError when something cannot be
    deleted.
    """
    folder = folder.with_name(folder.name.removeprefix(DISCARDED))
    doomed = folder.with_name(DISCARDED + folder.name)
    with contextlib.suppress(FileExistsError):
        doomed.mkdir(mode=0o700)
    fd = os.open(doomed, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        if os.path.lexists(folder):
            os.rename(folder, os.urandom(16).hex(), dst_dir_fd=fd)
        while names := os.listdir(fd):
            for name in names:
                _empty(fd, name)
    finally:
        os.close(fd)
    doomed.rmdir()


def _empty(top: int, name: str) -> None:
    """Delete ``name`` in ``top``; folders below it come to lie in ``top``."""
    if not stat.S_ISDIR(os.stat(name, dir_fd=top, follow_symlinks=False).st_mode):
        os.unlink(name, dir_fd=top)
        return
    fd = _opened(top, name)
    try:
        with os.scandir(fd) as entries:
            inside = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries]
        for below, is_folder in inside:
            if is_folder:
                _usable(fd, below)  # a folder that we may not write cannot be moved either
                os.rename(below, os.urandom(16).hex(), src_dir_fd=fd, dst_dir_fd=top)
            else:
                os.unlink(below, dir_fd=fd)
    finally:
        os.close(fd)
    os.rmdir(name, dir_fd=top)


def _opened(top: int, name: str) -> int:
    _usable(top, name)
    return os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)


def _usable(top: int, name: str) -> None:
    """Give ourselves back the rights on a folder of ours."""
    seen = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
    try:
        if os.fstat(seen).st_mode & 0o700 != 0o700:
            os.chmod(f"/proc/self/fd/{seen}", 0o700)
    finally:
        os.close(seen)
