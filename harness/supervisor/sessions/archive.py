"""The archive of removed sessions on disk: what goes in keeps its log, and leaves only by `purge`. Blocking."""

from __future__ import annotations

import contextlib
import os
import threading
from datetime import UTC, datetime
from pathlib import Path

from harness.protocol.paths import CHECKPOINTS
from harness.views import archived
from harness.views.archived import Archived
from harness.views.session_views import SessionRow
from harness.workspace.git.discard import DISCARDED, discard

_WORK = ("git", CHECKPOINTS, "vault", "spool", "jobs", "snapshots", "merge")
"""Folders of a session that serve its work and its processes, and nobody once both are gone."""
_deleting = threading.Lock()
"""Held while something is deleted: two deletions of one folder would meet what the other one took."""


def note_of(row: SessionRow, kept: list[str], lost: list[str]) -> Archived:
    """What is told of a session once its folder is in the archive."""
    return Archived(
        sid=row.sid,
        name=row.name,
        goal=row.goal,
        repo=row.repo,
        branch=row.branch,
        model=row.model,
        state=row.state,
        archived=datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
        spent_nano=row.spent_nano,
        reserved_nano=row.reserved_nano,
        unknown_nano=row.unknown_nano,
        tokens=row.tokens,
        requests=row.requests,
        kept=tuple(kept),
        lost=tuple(lost),
    )


def put(folder: Path, into: Path, note: Archived) -> None:
    """Move a session's folder to ``into`` in one step: killed before it, the session is still there to be removed.

    A note that finds no room is left out, for a full disk must not keep anybody from making some. Raises OSError.
    """
    with contextlib.suppress(OSError):
        archived.write(folder, note)
    folder.rename(into)


def tidy(root: Path) -> None:
    """Delete what nobody needs of all that is in the archive, and what a deletion that died left there.

    Raises OSError.
    """
    with _deleting:
        for entry in sorted(root.iterdir()):
            if entry.name.startswith(DISCARDED):
                discard(entry)
                continue
            for folder in (entry / name for name in _WORK):
                if os.path.lexists(folder) or os.path.lexists(folder.with_name(DISCARDED + folder.name)):
                    discard(folder)


def purge(root: Path, sid: str) -> bool:
    """Delete one archived session for good; False when there is none of exactly that id. Raises OSError."""
    with _deleting:
        if sid not in {one.sid for one in archived.listed(root)}:
            return False
        discard(root / sid)
    return True
