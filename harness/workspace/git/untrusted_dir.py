"""A folder that an agent can write, looked at without waiting, following or running anything.

Every path is walked by the kernel beneath the opened folder, no part of it a link; what is opened is a regular file. A
named pipe, a device or a socket has a kind and nothing else.
"""

from __future__ import annotations

import enum
import errno
import operator
import os
import stat
from pathlib import Path
from typing import NamedTuple, Self

from harness.linux import safe_files

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NAME = operator.itemgetter(0)
_LONGEST = 4096
"""Bytes of a path that the kernel takes at once, its end included."""


class Kind(enum.Enum):
    """What lies under a name.

    Git keeps files and links; OTHER are named pipes, sockets and devices, which hold no work.
    """

    FILE = "file"
    LINK = "link"
    FOLDER = "folder"
    OTHER = "other"


class Item(NamedTuple):
    """One name in a folder; ``stamp`` is its lstat when it was asked for."""

    name: str
    kind: Kind
    stamp: os.stat_result | None


class Ground:
    """The opened folder.

    Use it as a context manager. Paths are relative, with ``/``; the folder itself is the empty path.
    """

    def __init__(self, root: Path) -> None:
        self._fd = os.open(root, _FOLDER)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    def items(self, folder: str, *, stamps: bool = False) -> list[Item]:
        """What lies in a folder, by name; entries that vanish meanwhile are left out. Raises OSError."""
        fd = self._at(folder, _FOLDER)
        try:
            found: list[Item] = []
            with os.scandir(fd) as entries:
                for entry in entries:
                    try:
                        kind = _kind(entry)
                        found.append(
                            Item(
                                entry.name,
                                kind,
                                entry.stat(follow_symlinks=False) if stamps and kind is not Kind.FOLDER else None,
                            )
                        )
                    except FileNotFoundError:
                        continue
            return sorted(found, key=_NAME)
        finally:
            os.close(fd)

    def file(self, path: str) -> int:
        """A descriptor of a regular file, which the caller closes. Raises OSError when there is none."""
        return safe_files.opened(self._at(path), path)

    def read(self, path: str, limit: int) -> bytes:
        """The bytes of a regular file of at most ``limit`` bytes. Raises OSError, with EFBIG for a larger one."""
        return safe_files.bounded(self.file(path), limit, path)

    def link(self, path: str) -> bytes:
        """Where a symbolic link says it leads. Raises OSError."""
        seen = self._at(path)
        try:
            return os.readlink(b"", dir_fd=seen)
        finally:
            os.close(seen)

    def link_at(self, path: str) -> str | None:
        """Where a symbolic link says it leads; None for what is none. Raises OSError when nothing has this name."""
        seen = self._at(path)
        try:
            linked = stat.S_ISLNK(os.fstat(seen).st_mode)
            return os.fsdecode(os.readlink(b"", dir_fd=seen)) if linked else None
        finally:
            os.close(seen)

    def _at(self, path: str, flags: int = safe_files.LOOK) -> int:
        if len(os.fsencode(path)) >= _LONGEST:  # step by step it could be opened, in a time that an agent chooses
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG), path)
        return safe_files.beneath(self._fd, path, flags)


def _kind(entry: os.DirEntry[str]) -> Kind:
    if entry.is_file(follow_symlinks=False):
        return Kind.FILE
    if entry.is_dir(follow_symlinks=False):
        return Kind.FOLDER
    return Kind.LINK if entry.is_symlink() else Kind.OTHER
