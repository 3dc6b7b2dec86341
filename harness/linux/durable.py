"""Writing a whole file in one step, durably or not, and making names in a folder durable. Standard library only."""

from __future__ import annotations

import os
from pathlib import Path


def replace_file(target: Path, data: bytes) -> None:
    """`write_file`, and its name is durable too when this returns. Raises OSError."""
    write_file(target, data)
    sync_folder(target.parent)


def write_file(target: Path, data: bytes) -> None:
    """Replace ``target`` by a synced file with these bytes, mode 0600; the name is durable after `sync_folder`.

    Raises OSError; then nothing changed.
    """
    temporary = target.with_name(f".{target.name}.{os.getpid()}")
    fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        try:
            write_all(fd, data)
            os.fsync(fd)
        finally:
            os.close(fd)
        temporary.rename(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def swap_file(target: str | Path, data: bytes) -> None:
    """Replace ``target`` in one step by a file with these bytes, mode 0600, for whoever reads it after this process;
    a machine that loses power may lose it. Only one writer at a time.

    Raises OSError; then nothing changed.
    """
    new = f"{os.fspath(target)}.new"
    fd = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        write_all(fd, data)
    finally:
        os.close(fd)
    os.rename(new, target)


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
