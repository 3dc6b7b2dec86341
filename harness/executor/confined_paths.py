"""Paths of the file tools, which cannot lead out of the worktree whatever anybody swaps meanwhile. Standard library
only. Kernels without ``openat2`` get a walk that follows no link at all.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Iterator

from harness.linux import safe_files

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


class PathError(Exception):
    """The path cannot be used; the message is for the model."""


class Root:
    """A folder that stays open; every operation is beneath it.

    ``path`` is where it stands, for messages and absolute paths.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = os.open(path, _DIRECTORY)
        self._real = os.readlink(f"/proc/self/fd/{self.fd}")

    def close(self) -> None:
        """Let go of the folder."""
        os.close(self.fd)

    def relative(self, path: str) -> str:
        """``path`` relative to the root, lexically clean; raises PathError when it points elsewhere."""
        if "\0" in path:
            raise PathError("the path holds a NUL character")
        clean = os.path.normpath(path)
        if os.path.isabs(clean):
            if clean != self.path and not clean.startswith(self.path + "/"):
                raise PathError(f"{path} is outside the worktree {self.path}")
            clean = os.path.relpath(clean, self.path)
        if clean == ".." or clean.startswith("../"):
            raise PathError(f"{path} leads out of the worktree {self.path}")
        return clean

    def open(self, relative: str, flags: int, *, strict: bool = False) -> int:
        """Open what is there; links are followed only while they stay beneath (``strict``: never). Raises PathError."""
        try:
            return safe_files.beneath(self.fd, relative, flags, follow=not strict)
        except OSError as exc:
            raise PathError(_reason(relative, exc)) from exc

    def canonical(self, relative: str) -> str | None:
        """Where the path really leads, relative to the root and free of links; None when nothing is there.

        Raises PathError.
        """
        try:
            fd = self.open(relative, os.O_PATH)
        except PathError as exc:
            if isinstance(exc.__cause__, FileNotFoundError):
                return None
            raise
        try:
            real = os.readlink(f"/proc/self/fd/{fd}")
        finally:
            os.close(fd)
        if real == self._real:
            return "."
        if not real.startswith(self._real.rstrip("/") + "/"):
            raise PathError(f"{relative} moved out of the worktree while it was looked at")
        return real[len(self._real.rstrip("/")) + 1 :]

    def make_folders(self, relative: str) -> None:
        """Create the missing folders of a relative folder path, each beneath the root. Raises PathError."""
        parts = relative.split("/")
        for count in range(1, len(parts) + 1):
            here = "/".join(parts[:count])
            if self.canonical(here) is not None:
                continue
            parent = self.open("/".join(parts[: count - 1]) or ".", _DIRECTORY)
            try:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(parts[count - 1], 0o777, dir_fd=parent)
                os.fsync(parent)
            except OSError as exc:
                raise PathError(_reason(here, exc)) from exc
            finally:
                os.close(parent)

    def read(self, relative: str, limit: int) -> bytes:
        """Bytes of a regular file of at most ``limit`` bytes. Raises PathError."""
        try:
            return safe_files.bounded(safe_files.opened(self.open(relative, os.O_PATH), relative), limit, relative)
        except safe_files.Unreadable as exc:
            raise PathError(f"{exc}; use exec or shell for it" if exc.errno == errno.EFBIG else str(exc)) from exc
        except OSError as exc:
            raise PathError(_reason(relative, exc)) from exc

    def replace(self, relative: str, data: bytes) -> str:
        """Write a whole file durably (temporary file, fsync, rename, fsync of the folder); returns its link-free
        relative path.

        Missing folders are created, the mode of an existing file stays, a link is followed only beneath the root.
        Raises PathError.
        """
        target = self.canonical(relative)
        if target is None:
            target = relative
            if folder := os.path.dirname(relative):
                self.make_folders(folder)
                target = os.path.normpath(os.path.join(self.canonical(folder) or folder, os.path.basename(relative)))
        if target == ".":
            raise PathError(f"{relative} is a folder, not a file")
        folder, name = os.path.split(target)
        parent = self.open(folder or ".", _DIRECTORY, strict=True)
        try:
            with _temporary(parent, name, _mode(parent, name, relative)) as (fd, temporary):
                view = memoryview(data)
                while view:
                    view = view[os.write(fd, view) :]
                os.fsync(fd)
                os.rename(temporary, name, src_dir_fd=parent, dst_dir_fd=parent)
            os.fsync(parent)
        except OSError as exc:
            raise PathError(_reason(relative, exc)) from exc
        finally:
            os.close(parent)
        return target


@contextlib.contextmanager
def _temporary(parent: int, name: str, mode: int) -> Iterator[tuple[int, str]]:
    temporary = f".{name[:80]}.{os.urandom(6).hex()}.tmp"
    fd = os.open(
        temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode & 0o777, dir_fd=parent
    )
    try:
        os.fchmod(fd, mode)
        yield fd, temporary
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=parent)
        raise
    finally:
        os.close(fd)


def _mode(parent: int, name: str, shown: str) -> int:
    try:
        info = os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return 0o644
    if stat.S_ISLNK(info.st_mode):
        raise PathError(f"{shown} is a symbolic link to nothing that exists; remove it or write to its target")
    if not stat.S_ISREG(info.st_mode):
        raise PathError(f"{shown} is {safe_files.kind(info.st_mode)}, not a file")
    return stat.S_IMODE(info.st_mode) & 0o777


def _reason(path: str, exc: OSError) -> str:
    if exc.errno == errno.ENOENT:
        return f"{path} does not exist"
    if exc.errno in (errno.EXDEV, errno.ELOOP):
        return f"{path} leads out of the worktree through a symbolic link, or its links go round in circles"
    if exc.errno == errno.ENOTDIR:
        return f"a part of {path} is a file, not a folder"
    if exc.errno in (errno.EROFS, errno.EBUSY):
        return f"{path} is protected and cannot be changed from inside the sandbox"
    if exc.errno in (errno.ENOSPC, errno.EDQUOT):
        return f"{path} could not be written: no space left on the device; the old content is unchanged"
    return f"{path}: {exc.strerror}"
