"""Looking at a tree that an agent writes: names and stamps without following anything, content within limits. Standard library only."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from harness.hands import kernel
from harness.vault.entries import STAMP

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_STRICT = kernel.RESOLVE_BENEATH | kernel.RESOLVE_NO_SYMLINKS | kernel.RESOLVE_NO_MAGICLINKS
_LONGEST = 16 << 10
_AT_ONCE = 3800
"""Bytes of a path that the kernel takes in one call, with some room."""
_NAMES_BYTES = 256 << 20
"""Bytes of all paths of one tree: long names must not fill the memory of whoever looks."""
_FILE = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY


class TreeTooLarge(Exception):
    """More or longer names than a snapshot may hold."""


@dataclass(frozen=True, slots=True)
class Root:
    """One folder of the session that is kept. ``letter`` begins its names; ``hidden`` are names at its top that are not ours to keep."""

    letter: bytes
    path: str
    hidden: frozenset[bytes] = frozenset()


class OpenRoot:
    """A root, opened once; every path is resolved beneath it and follows no link."""

    def __init__(self, root: Root) -> None:
        """Raises OSError when the folder is not there or is no folder."""
        self.root = root
        self.fd = os.open(root.path, _FOLDER)
        self.device = os.fstat(self.fd).st_dev

    def close(self) -> None:
        os.close(self.fd)

    def open(self, relative: bytes, flags: int) -> int:
        """Open what is there, links nowhere on the way, however long the way is. Raises OSError."""
        at, rest = self.fd, relative
        try:
            while len(rest) > _AT_ONCE:
                cut = rest.rindex(b"/", 0, _AT_ONCE)
                below = kernel.openat2(at, os.fsdecode(rest[:cut]), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, 0, _STRICT)
                if at != self.fd:
                    os.close(at)
                at, rest = below, rest[cut + 1 :]
            return kernel.openat2(at, os.fsdecode(rest) or ".", flags | os.O_CLOEXEC, 0, _STRICT)
        finally:
            if at != self.fd:
                os.close(at)

    def stat(self, relative: bytes) -> os.stat_result:
        """What lstat says of a name. Raises OSError."""
        parent, _, name = relative.rpartition(b"/")
        folder = self.folder(parent)
        try:
            return os.stat(name, dir_fd=folder, follow_symlinks=False)
        finally:
            os.close(folder)

    def folder(self, relative: bytes) -> int:
        """Open a folder beneath the root, one that its owner closed to himself too. Raises OSError."""
        return self._anyway(relative, os.O_RDONLY | os.O_DIRECTORY, 0o500)

    def _anyway(self, relative: bytes, flags: int, needed: int) -> int:
        """Open what belongs to us although its mode says no: the mode is widened for the moment of opening. Raises OSError."""
        try:
            return self.open(relative, flags)
        except PermissionError:
            handle = self.open(relative, os.O_PATH)
        try:
            mode = stat.S_IMODE(os.fstat(handle).st_mode)
            name = f"/proc/self/fd/{handle}"
            os.chmod(name, mode | needed)
            try:
                return self.open(relative, flags)
            finally:
                os.chmod(name, mode)
        finally:
            os.close(handle)

    def read(self, relative: bytes, wanted: bytes, limit: int) -> bytes | None:
        """Content of the file or link whose stamp is ``wanted``; None when it is another thing by now or larger than ``limit``. Raises OSError."""
        if stat.S_ISLNK(STAMP.unpack_from(wanted)[0]):
            return self._target(relative)
        fd = self._anyway(relative, _FILE, 0o400)
        try:
            info = os.fstat(fd)
            if not stat.S_ISREG(info.st_mode) or info.st_size > limit:
                return None
            pieces: list[bytes] = []
            left = limit + 1
            while left > 0 and (piece := os.read(fd, min(left, 1 << 20))):
                pieces.append(piece)
                left -= len(piece)
            return b"".join(pieces) if left > 0 else None
        finally:
            os.close(fd)

    def _target(self, relative: bytes) -> bytes:
        parent, _, name = relative.rpartition(b"/")
        folder = self.folder(parent)
        try:
            return os.readlink(name, dir_fd=folder)
        finally:
            os.close(folder)


def walk(
    root: OpenRoot, start: bytes = b"", *, limit: int, on_folder: Callable[[bytes, int], None] | None = None
) -> Iterator[tuple[bytes, os.stat_result | None]]:
    """(path beneath the root, lstat) of everything below ``start``, ``start`` itself left out; None = it cannot be looked into.

    ``on_folder(path, fd)`` is told of every folder before its names are read. Raises TreeTooLarge.
    """
    count = size = 0
    pending = [start]
    while pending:
        here = pending.pop()
        try:
            fd = root.folder(here)
        except OSError:
            yield here, None
            continue
        try:
            if on_folder is not None:
                on_folder(here, fd)
            prefix = here + b"/" if here else b""
            with os.scandir(fd) as listed:
                for item in listed:
                    name = os.fsencode(item.name)
                    if not here and name in root.root.hidden:
                        continue
                    try:
                        info = item.stat(follow_symlinks=False)
                    except OSError:
                        continue  # gone while we looked
                    count += 1
                    if count > limit:
                        raise TreeTooLarge(f"{root.root.path} holds more than {limit} names")
                    path = prefix + name
                    size += len(path)
                    if size > _NAMES_BYTES or len(path) > _LONGEST:
                        raise TreeTooLarge(f"{root.root.path} holds paths that are too long to be kept")
                    yield path, info
                    if not stat.S_ISDIR(info.st_mode):
                        continue
                    if info.st_dev != root.device:
                        yield path, None
                    else:
                        pending.append(path)
        finally:
            os.close(fd)


def look(root: OpenRoot, names: Mapping[bytes, set[bytes]]) -> Iterator[tuple[bytes, os.stat_result | None]]:
    """(path, lstat or None when gone) of single names, grouped by folder: ``{folder: {name, …}}``."""
    for folder, listed in names.items():
        try:
            fd = root.folder(folder)
        except OSError:
            fd = -1
        try:
            for name in listed:
                path = folder + b"/" + name if folder else name
                try:
                    yield path, os.stat(name, dir_fd=fd, follow_symlinks=False) if fd >= 0 else None
                except OSError:
                    yield path, None
        finally:
            if fd >= 0:
                os.close(fd)
