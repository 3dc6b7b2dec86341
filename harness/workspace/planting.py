"""Writing a small file into a folder that an agent can write, maybe at this moment: no link is followed."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from harness.linux import durable

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def plant(root: Path, path: str, data: bytes | None) -> bool:
    """Put a file at this relative path, or take it away with None; False when what an agent made of the way there is in
    the way.
    """
    *folders, name = path.split("/")
    try:
        at = os.open(root, _FOLDER)
        try:
            for folder in folders:
                if data is not None:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(folder, 0o700, dir_fd=at)
                below = os.open(folder, _FOLDER, dir_fd=at)
                os.close(at)
                at = below
            _put(at, name, data)
        finally:
            os.close(at)
    except OSError:
        return False
    return True


def _put(folder: int, name: str, data: bytes | None) -> None:
    if data is None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=folder)
        return
    beside = f".{name}.new"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(beside, dir_fd=folder)
    fd = os.open(beside, _FILE, 0o600, dir_fd=folder)
    try:
        durable.write_all(fd, data)
    finally:
        os.close(fd)
    os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
