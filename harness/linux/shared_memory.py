"""What a process that forks others does before, so that they share its memory for long. Standard library only."""

from __future__ import annotations

import gc
import sys

_NAMES = 4000


def freeze() -> None:
    """Put all that lives now outside the garbage collector, so that no collection of a child touches its pages; and
    leave room for names, because the child whose next one does not fit copies the interpreter's whole table of them
    (0.35 MB for a keeper).
    """
    room = [sys.intern(f"name {number}") for number in range(_NAMES)]
    room.clear()
    gc.collect()
    gc.disable()
    gc.freeze()
