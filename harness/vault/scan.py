"""Looking at a tree that an agent writes: names and stamps without following anything, content within limits.

Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from harness.linux import kernel
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
    """One folder of the session that is kept.

    ``letter`` begins its names; ``hidden`` are names at its top that are not ours to keep.
    """

    letter: bytes
    path: str
    hidden: frozenset[bytes] = frozenset()


class OpenRoot:
    """A root, opened once; every path is resolved beneath it and follows no link."""

    def __init__(self, root: Root) -> None:
        """Raises OSError when the folder is not there or is no folder."""
        self.root = root
        self.fd = os.open(root.path, os.O_PATH | _FOLDER)
        self.device = os.fstat(self.fd).st_dev

    def close(self) -> None:
        os.close(self.fd)

    def open(self, relative: bytes, flags: int) -> int:
        """Open what is there, links nowhere on the way, however long the way is. Raises OSError."""
        at = self.fd
        rest = relative
        try:
            while len(rest) > _AT_ONCE:
                cut = rest.rindex(b"/", 0, _AT_ONCE)
                below = kernel.openat2(
                    at, os.fsdecode(rest[:cut]), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC, 0, _STRICT
                )
                if at != self.fd:
                    os.close(at)
                at = below
                rest = rest[cut + 1 :]
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

    @contextlib.contextmanager
    def inside(self, relative: bytes) -> Iterator[int]:
        """The same, with the right to look at what stands in it for as long as it takes. Raises OSError."""
        fd = self.folder(relative)
        try:
            mode = stat.S_IMODE(os.fstat(fd).st_mode)
            closed = mode & 0o500 != 0o500 and not _searchable(fd)
            if closed:
                os.fchmod(fd, mode | 0o500)
            try:
                yield fd
            finally:
                if closed:
                    os.fchmod(fd, mode)
        finally:
            os.close(fd)

    def set_mode(self, mode: int) -> None:
        """Permissions of the root itself. Raises OSError."""
        os.chmod(f"/proc/self/fd/{self.fd}", mode)

    def _anyway(self, relative: bytes, flags: int, needed: int) -> int:
        """Open what belongs to us although modes on the way say no: they are widened for the moment of opening.

        Raises OSError.
        """
        with contextlib.suppress(PermissionError):
            return self.open(relative, flags)
        with contextlib.ExitStack() as back:
            here = self.fd
            for part in os.fsdecode(relative).split("/") if relative else ():
                back.enter_context(_widened(here, 0o100))
                here = kernel.openat2(here, part, os.O_PATH | os.O_CLOEXEC, 0, _STRICT)
                back.callback(os.close, here)
            back.enter_context(_widened(here, needed))
            return os.open(f"/proc/self/fd/{here}", flags | os.O_CLOEXEC)

    def read(self, relative: bytes, wanted: bytes, limit: int) -> bytes | None:
        """Content of the file or link whose stamp is ``wanted``; None when it is another thing by now or larger than
        ``limit``. Raises OSError.
        """
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
        with self.inside(parent) as folder:
            return os.readlink(name, dir_fd=folder)


@contextlib.contextmanager
def _widened(handle: int, needed: int) -> Iterator[None]:
    """The owner has these rights meanwhile. Raises OSError."""
    mode = stat.S_IMODE(os.fstat(handle).st_mode)
    name = f"/proc/self/fd/{handle}"
    if mode & needed == needed:
        yield
        return
    os.chmod(name, mode | needed)
    try:
        yield
    finally:
        os.chmod(name, mode)


def _searchable(fd: int) -> bool:
    try:
        os.stat(".", dir_fd=fd)
    except PermissionError:
        return False
    return True


def walk(
    root: OpenRoot, start: bytes = b"", *, limit: int, on_folder: Callable[[bytes, int], None] | None = None
) -> Iterator[tuple[bytes, os.stat_result | None]]:
    """(path beneath the root, lstat) of ``start`` when that is the root and of everything below; None = it cannot be
    looked into.

    ``on_folder(path, fd)`` is told of every folder before its names are read. Raises TreeTooLarge.
    """
    count = 0
    size = 0
    pending = [start]
    if not start:
        yield start, os.fstat(root.fd)
    while pending:
        here = pending.pop()
        with contextlib.ExitStack() as stack:
            try:
                fd = stack.enter_context(root.inside(here))
            except OSError:
                yield here, None
                continue
            if on_folder is not None:
                on_folder(here, fd)
            prefix = here + b"/" if here else b""
            for item in stack.enter_context(os.scandir(fd)):
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


def look(root: OpenRoot, names: Mapping[bytes, set[bytes]]) -> Iterator[tuple[bytes, os.stat_result | None]]:
    """(path, lstat or None when gone) of single names, grouped by folder: ``{folder: {name, …}}``; an empty name is the
    root itself.
    """
    for folder, listed in names.items():
        if b"" in listed:
            yield b"", os.fstat(root.fd)  # before it is opened, which may take a wider mode for a moment
        with contextlib.ExitStack() as stack:
            try:
                fd = stack.enter_context(root.inside(folder))
            except OSError:
                fd = -1
            for name in listed - {b""}:
                yield folder + b"/" + name if folder else name, _seen(fd, name) if fd >= 0 else None


def _seen(fd: int, name: bytes) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False)
    except OSError:
        return None
