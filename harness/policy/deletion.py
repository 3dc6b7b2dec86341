"""Which command is a plain deletion, and what it names. Pure.

Only a single ``rm``, ``rmdir`` or ``unlink`` with plain words is understood.
"""

from __future__ import annotations

import os.path
from collections.abc import Sequence

MOST = 20
"""Names that are looked at."""
_DELETES = ("rm", "rmdir", "unlink")


def may_hold(script: str) -> bool:
    """False for a script that surely is no plain deletion, so that its syntax need not be known."""
    return any(word in script for word in _DELETES)


def names(argv: Sequence[str] | None) -> list[str]:
    """The names that a command deletes; empty when it is no plain deletion."""
    if not argv or os.path.basename(argv[0]) not in _DELETES:
        return []
    plain: list[str] = []
    for at, text in enumerate(argv[1:], 2):
        if text == "--":
            return plain + list(argv[at:])
        if not text.startswith("-") or text == "-":
            plain.append(text)
    return plain
