"""What can be taken back of a session and what became of it, as clients see it. Texts are untrusted: whoever shows them
passes the display function.
"""

from __future__ import annotations

import msgspec


class UndoPoint(msgspec.Struct, frozen=True):
    """A state that can be brought back: the one before ``call_id`` (a call or an undo).

    ``changed`` counts names that differ after it, ``yours`` those that a person's commit changed before the next one.
    """

    call_id: str
    tool: str
    title: str
    ts: str
    snapshot: str
    left_out: int = 0
    undone: bool = False
    changed: int = 0
    expired: bool = False
    yours: int = 0


class UndoPoints(msgspec.Struct, frozen=True, kw_only=True):
    """States that can be brought back, newest first, and how many bytes they take."""

    points: list[UndoPoint]
    store_bytes: int


class BroughtBack(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a worktree that is now what it was; ``refused`` are the first of the names that could not be
    brought back.
    """

    undo_id: str
    restored: int
    removed: int
    refused: list[str]
    refused_count: int
    before: str
    """The checkpoint of what was there; empty where git could not keep it."""


class Undone(BroughtBack, frozen=True, kw_only=True):
    """The worktree is what it was before call ``to``; ``commits`` are the first commits that the branch lost."""

    to: str
    title: str
    commits: list[str]
    more_commits: int


class Restored(BroughtBack, frozen=True, kw_only=True):
    """The worktree is what it was at a checkpoint."""

    checkpoint_id: str
