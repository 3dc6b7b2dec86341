"""A worktree in which files are put, and taken away into a folder of ours beside it. Blocking.

What lies in the worktree is hostile: every path is walked beneath the opened folder and through no link, and nothing is
deleted.
"""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from harness.linux import safe_files

_LINK = "120000"
_LOOK = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW
_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Aside:
    """The worktree and the folder aside, both open."""

    def __init__(self, root: Path, aside: Path) -> None:
        self._root = os.open(root, _OPEN)
        try:
            self._aside = os.open(aside, _OPEN)
        except OSError:
            os.close(self._root)
            raise

    def __enter__(self) -> Aside:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._root)
        os.close(self._aside)

    def take_away(self, path: str, name: str) -> None:
        """Move what is at ``path``, or what stands where a folder above it should be, aside. Raises OSError."""
        parts = path.split("/")
        for count in range(1, len(parts)):
            with self._folder("/".join(parts[: count - 1])) as parent:
                try:
                    kind = os.stat(parts[count - 1], dir_fd=parent, follow_symlinks=False).st_mode
                except FileNotFoundError:
                    return
                if not stat.S_ISDIR(kind):
                    self._move(parent, parts[count - 1], f"{name}-above-{count}")
                    return
        with self._folder(os.path.dirname(path)) as parent, contextlib.suppress(FileNotFoundError):
            self._move(parent, parts[-1], name)

    def give_back(self, path: str, name: str) -> None:
        """Move what lies aside under ``name`` to ``path``, where nothing is. Raises OSError."""
        self._folders(os.path.dirname(path))
        with self._folder(os.path.dirname(path)) as parent:
            os.rename(name, os.path.basename(path), src_dir_fd=self._aside, dst_dir_fd=parent)

    def put(self, path: str, source: Path, mode: str) -> None:
        """Make ``path``, where nothing is, the file or link that ``source`` (ours) is. Raises OSError."""
        self._folders(os.path.dirname(path))
        name = os.path.basename(path)
        with self._folder(os.path.dirname(path)) as parent:
            if mode == _LINK:
                os.symlink(os.readlink(source), name, dir_fd=parent)
                return
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(source, "rb") as data, open(os.open(name, flags, 0o600, dir_fd=parent), "wb") as out:
                while chunk := data.read(1 << 20):
                    out.write(chunk)
                os.fchmod(out.fileno(), 0o755 if mode == "100755" else 0o644)

    def write(self, path: str, data: bytes, mtime_ns: int | None = None) -> None:
        """Put these bytes at ``path``, in one step for whoever reads it. Raises OSError."""
        name = os.path.basename(path)
        spare = f".{name}.{os.urandom(6).hex()}"
        above = os.path.dirname(path)
        self.take_away(f"{above}/{spare}".lstrip("/"), "plan-above")  # only what stands where a folder should be
        self._folders(above)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with self._folder(above) as parent:
            with open(os.open(spare, flags, 0o644, dir_fd=parent), "wb") as out:
                out.write(data)
                out.flush()
                if mtime_ns is not None:
                    os.utime(out.fileno(), ns=(mtime_ns, mtime_ns))
            try:
                os.rename(spare, name, src_dir_fd=parent, dst_dir_fd=parent)
            except OSError:
                os.unlink(spare, dir_fd=parent)
                self._move(parent, name, "plan")
                raise

    def _move(self, parent: int, name: str, to: str) -> None:
        if to in os.listdir(self._aside):
            to = f"{to}-{os.urandom(4).hex()}"  # what lies aside under that name stays
        os.rename(name, to, src_dir_fd=parent, dst_dir_fd=self._aside)

    def _folders(self, folder: str) -> None:
        parts = [part for part in folder.split("/") if part]
        for count, part in enumerate(parts):
            with self._folder("/".join(parts[:count])) as parent, contextlib.suppress(FileExistsError):
                os.mkdir(part, 0o755, dir_fd=parent)

    @contextlib.contextmanager
    def _folder(self, path: str) -> Iterator[int]:
        """A folder of the worktree, open; one that its owner may not write is made so."""
        seen = os.dup(self._root) if not path else safe_files.beneath(self._root, path, _LOOK)
        try:
            mode = stat.S_IMODE(os.fstat(seen).st_mode)
            narrow = mode & 0o700 != 0o700
            if narrow:
                os.chmod(f"/proc/self/fd/{seen}", mode | 0o700)
            fd = os.open(f"/proc/self/fd/{seen}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                yield fd
            finally:
                os.close(fd)
        finally:
            os.close(seen)
