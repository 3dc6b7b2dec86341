"""Writing a whole file in one step, durably or not, and making names in a folder durable. Standard library only."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


def replace_file(target: Path, data: bytes) -> None:
    """`write_file`, and its name is durable too when this returns. Raises OSError."""
    write_file(target, data)
    sync_folder(target.parent)


def write_file(target: Path, data: bytes) -> None:
    """Replace ``target`` by a synced file with these bytes, mode 0600; the name is durable after `sync_folder`.

    Raises OSError; then nothing changed.
    """
    with swapping(target, target.with_name(f".{target.name}.{os.getpid()}")) as fd:
        write_all(fd, data)


def swap_file(target: str | Path, data: bytes) -> None:
    """Replace ``target`` in one step by a file with these bytes, mode 0600, for whoever reads it after this process;
    a machine that loses power may lose it. Only one writer at a time.

    Raises OSError; then nothing changed.
    """
    with swapping(target, f"{os.fspath(target)}.new", sync=False) as fd:
        write_all(fd, data)


@contextmanager
def swapping(target: str | Path, beside: str | Path, *, sync: bool = True) -> Iterator[int]:
    """The descriptor of a new file ``beside``, of mode 0600, that takes the place of ``target`` in one step when the
    block ends well, and is gone when it does not. What had its name is unlinked.

    Raises OSError; then ``target`` has not changed.
    """
    with contextlib.suppress(FileNotFoundError):
        os.unlink(beside)
    fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            yield fd
            if sync:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.rename(beside, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(beside)
        raise


def write_all(fd: int, data: bytes) -> None:
    """All of it, in as many writes as that takes. Raises OSError."""
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable. Raises OSError."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
