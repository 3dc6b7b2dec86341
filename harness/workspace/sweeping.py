"""Removing folders that an agent filled: as deep as it liked, closed by their modes, with anything in them. Nothing is followed or opened.

Folders in folders are moved up to the top before they are emptied, so neither the stack, nor descriptors, nor a path's length runs out.
"""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
import stat
from collections.abc import Iterator
from pathlib import Path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class NotSwept(OSError):
    """Something could not be removed; ``filename`` is the first of it."""

    def __str__(self) -> str:
        return f"{self.filename} could not be removed: {self.strerror}"


def sweep(path: Path) -> None:
    """Remove ``path``: a folder with all that is in it, or a single file. Missing is fine. Raises NotSwept after trying everything."""
    try:
        if not stat.S_ISDIR(path.lstat().st_mode):
            path.unlink()
            return
        with _opened(str(path), None) as top:
            _empty(top, str(path))
        path.rmdir()
    except FileNotFoundError:
        return
    except NotSwept:
        raise
    except OSError as exc:
        raise NotSwept(exc.errno, exc.strerror, str(path)) from exc


def _empty(top: int, name: str) -> None:
    fresh = (f".sweep-{number}" for number in itertools.count())
    while entries := _entries(top):
        failed: OSError | None = None
        done = 0
        for entry, is_folder in entries:
            try:
                if is_folder:
                    _flatten(top, entry, fresh)
                else:
                    os.unlink(entry, dir_fd=top)
                done += 1
            except FileNotFoundError:
                done += 1
            except OSError as exc:
                failed = failed or NotSwept(exc.errno, exc.strerror, os.path.join(name, entry))
        if failed is not None and not done:
            raise failed


def _flatten(top: int, folder: str, fresh: Iterator[str]) -> None:
    """Remove one folder of the top; folders in it move up, to be removed in a later round."""
    with _opened(folder, top) as fd:
        for entry, is_folder in _entries(fd):
            if not is_folder:
                os.unlink(entry, dir_fd=fd)
                continue
            try:
                os.rmdir(entry, dir_fd=fd)
            except OSError:
                _permit(entry, fd)
                _move_up(entry, fd, top, fresh)
    os.rmdir(folder, dir_fd=top)


def _move_up(entry: str, fd: int, top: int, fresh: Iterator[str]) -> None:
    for name in fresh:
        try:
            os.rename(entry, name, src_dir_fd=fd, dst_dir_fd=top)
        except OSError as exc:
            if exc.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):  # those say that the name is taken
                raise
        else:
            return


def _entries(fd: int) -> list[tuple[str, bool]]:
    with os.scandir(fd) as found:
        return [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]


@contextlib.contextmanager
def _opened(name: str, at: int | None) -> Iterator[int]:
    """A folder to be emptied, ours to read and write whatever its mode said."""
    _permit(name, at)
    fd = os.open(name, _FOLDER, dir_fd=at)
    try:
        yield fd
    finally:
        os.close(fd)


def _permit(name: str, at: int | None) -> None:
    fd = os.open(name, _NAME, dir_fd=at)
    try:
        if os.fstat(fd).st_mode & 0o700 != 0o700:
            os.chmod(f"/proc/self/fd/{fd}", 0o700)
    finally:
        os.close(fd)
