"""One lock per repository over everything that changes it: git's own locks make parallel `worktree add` fail instead of
wait.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

from harness.protocol import locks
from harness.workspace.git.errors import WorkspaceError


class RepositoryBusy(WorkspaceError):
    code = "repository_busy"


def lock_file(common: Path, folder: Path) -> Path:
    """The lock's name below ``folder`` (the parent of the worktrees, ours): one per repository, by its real path."""
    return folder / f".lock-{hashlib.sha256(os.fsencode(os.path.realpath(common))).hexdigest()[:16]}"


@contextlib.contextmanager
def repository_lock(common: Path, folder: Path, timeout: float = 120.0) -> Iterator[None]:
    """Hold the repository's lock; it goes away with the process. Raises RepositoryBusy after ``timeout`` seconds.

    Blocks its thread: call it in one of the supervisor's worker threads.
    """
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    fd = locks.take(lock_file(common, folder), timeout)
    if fd is None:
        raise RepositoryBusy(
            f"repository {common} stayed locked for {timeout:.0f} s by another operation of ours; try again"
        )
    try:
        yield
    finally:
        os.close(fd)
