"""Writing a small file into a folder that an agent can write, maybe at this moment: no link is followed."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from harness.linux import durable
from harness.workspace.git.discard import discard

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


def put(path: Path, text: str) -> None:
    """Put a file of ours in place of whatever is there, a folder too; what an agent left under the temporary name
    goes. Raises OSError.
    """
    temporary = path.with_name(f".{path.name}.new")
    clear(temporary)
    make_way(path)
    with durable.swapping(path, temporary, sync=False) as fd:
        durable.write_all(fd, os.fsencode(text))


def make_way(path: Path) -> None:
    """A folder cannot be replaced by a file."""
    if path.is_dir() and not path.is_symlink():
        clear(path)


def clear(path: Path) -> None:
    """Take away what has this name, whatever it is; a folder with all that is in it."""
    try:
        path.unlink(missing_ok=True)
    except IsADirectoryError:
        discard(path)
