"""What a kept state of the worktree does not hold, so that no undo brings it back. Pure, standard library only."""

from __future__ import annotations

from collections.abc import Collection, Sequence

ANY = "*"
"""Stands for files that are left out and not named."""


def left_out(count: int, names: Sequence[str]) -> tuple[str, ...]:
    """The names of ``count`` files that were left out; `ANY` among them when not all are named."""
    return (*names, ANY) if count > len(names) else tuple(names)


def may_be(path: str, unkept: Collection[str]) -> bool:
    """Whether the file at ``path`` in the worktree may be one of them."""
    return path in unkept or ANY in unkept
