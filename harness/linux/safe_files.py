"""Opening what somebody else may have made: without waiting, following, or end. Standard library only.

A name in a worktree, a log's folder or a private git folder can be a named pipe, a device, a link to a secret or a file
of a terabyte without content. So the name is first looked at without opening what is behind it; only a regular file is
opened, and never read beyond a limit. Paths are walked beneath an open folder, by the kernel in one step where it has
``openat2``, and whatever anybody swaps meanwhile does not lead out of it.
"""

from __future__ import annotations

import errno
import os
import stat

SMALL = 1 << 20
"""Bytes that a file of git's own bookkeeping (HEAD, a ref, ``commondir``, ``alternates``) has at most."""
LOOK = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
"""Opens a name without what is behind it."""
_READ = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Unreadable(OSError):
    """What is there is not a regular file, or is too large.

    ``strerror`` says which, ``filename`` names it; never its content.
    """

    def __str__(self) -> str:
        return f"{self.filename} {self.strerror}"


def kind(mode: int) -> str:
    """What a file of this mode is, in words."""
    names = (
        (stat.S_ISREG, "a file"),
        (stat.S_ISDIR, "a folder"),
        (stat.S_ISLNK, "a symbolic link"),
        (stat.S_ISFIFO, "a named pipe"),
    )
    return next((name for is_that, name in names if is_that(mode)), "a socket" if stat.S_ISSOCK(mode) else "a device")


def regular(path: str | os.PathLike[str]) -> int:
    """A descriptor of the regular file ``path``, whose last component is not followed.

    Raises Unreadable, OSError; the caller closes it.
    """
    return opened(os.open(path, LOOK), os.fspath(path))


def regular_beneath(folder: str | os.PathLike[str], name: str) -> int:
    """The same for ``name`` (relative, without ``..``) in ``folder`` when no part of it below the folder, nor the
    folder, is a link.
    """
    at = os.open(folder, LOOK | os.O_DIRECTORY)
    try:
        found = beneath(at, name)
    finally:
        os.close(at)
    return opened(found, os.path.join(folder, name))


def read(path: str | os.PathLike[str], limit: int = SMALL) -> bytes:
    """The bytes of a regular file of at most ``limit`` bytes.

    Raises Unreadable when it is none, OSError when it cannot be read.
    """
    return bounded(regular(path), limit, os.fspath(path))


def read_beneath(folder: str | os.PathLike[str], name: str, limit: int = SMALL) -> bytes:
    """The same for a name in a folder, following no link on the way. Raises Unreadable, OSError."""
    return bounded(regular_beneath(folder, name), limit, os.path.join(folder, name))


def read_named(folder: str, path: str, limit: int) -> bytes:
    """The bytes of ``path``, absolute or relative to ``folder``, when no part of it is a link.

    Raises Unreadable, OSError.
    """
    return read_beneath("/", path.lstrip("/"), limit) if os.path.isabs(path) else read_beneath(folder, path, limit)


def beneath(folder: int, path: str, flags: int = LOOK, *, follow: bool = False) -> int:
    """A descriptor of ``path`` (relative, without ``..``) below an open folder; empty means the folder itself.

    No part of the way is a link; ``follow``: links are followed while they stay beneath, where the kernel can see to
    that. Raises OSError, with EXDEV for what leads out and ELOOP for what lies behind a link.
    """
    parts = [part for part in path.split("/") if part not in ("", ".")] or ["."]
    if path.startswith("/") or ".." in parts:
        raise OSError(errno.EXDEV, "leads out of the folder", path)
    from harness.linux import kernel  # here, since the screen opens its settings without it

    stays = kernel.RESOLVE_BENEATH | kernel.RESOLVE_NO_MAGICLINKS
    resolve = stays if follow else stays | kernel.RESOLVE_NO_SYMLINKS
    try:
        return kernel.openat2(folder, "/".join(parts), flags, 0, resolve)
    except OSError as exc:
        if exc.errno not in (errno.ENOSYS, errno.ENAMETOOLONG):
            raise OSError(exc.errno, os.strerror(exc.errno or 0), path) from exc
    here = os.dup(folder)
    try:
        for part in parts[:-1]:
            below = os.open(part, LOOK, dir_fd=here)
            os.close(here)
            here = below
            if stat.S_ISLNK(os.fstat(here).st_mode):
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), path)
        return os.open(parts[-1], flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=here)
    finally:
        os.close(here)


def opened(seen: int, name: str) -> int:
    """Open the inode behind an O_PATH descriptor, which is closed, once it is known to be a regular file: what lies
    under the name now does not matter. Raises Unreadable, OSError.
    """
    try:
        mode = os.fstat(seen).st_mode
        if not stat.S_ISREG(mode):
            raise Unreadable(errno.EINVAL, f"is {kind(mode)}, not a file", name)
        return os.open(f"/proc/self/fd/{seen}", _READ)
    except Unreadable:
        raise
    except OSError as exc:
        raise OSError(exc.errno, exc.strerror, name) from exc
    finally:
        os.close(seen)


def bounded(fd: int, limit: int, name: str) -> bytes:
    """The bytes of an open file of at most ``limit`` bytes, which is closed. Raises Unreadable, OSError."""
    try:
        size = os.fstat(fd).st_size
        if size > limit:
            raise Unreadable(errno.EFBIG, f"has {size} bytes, over the limit of {limit}", name)
        found = bytearray()
        while chunk := os.read(fd, min(1 << 20, limit + 1 - len(found))):
            found += chunk
            if len(found) > limit:  # it grew while it was read
                raise Unreadable(errno.EFBIG, f"has more than {limit} bytes", name)
        return bytes(found)
    finally:
        os.close(fd)
