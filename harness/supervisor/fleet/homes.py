"""Whether a session's worktree is its own place in this state folder: one that names another came from a copy and is
not ours to drive.
"""

from __future__ import annotations

import os
from pathlib import Path

from harness.events import types as t
from harness.protocol.paths import SessionFolder
from harness.workspace.git.errors import DamagedWorktree
from harness.workspace.tree import worktrees as trees


def place(folder: Path) -> tuple[int, int]:
    """Device and inode. Raises OSError."""
    st = os.stat(folder)
    return st.st_dev, st.st_ino


def foreign(folder: SessionFolder, worktrees: Path, intent: t.SessionIntent | None) -> str:
    """Why this session is not ours to drive, or nothing. Blocking; reads one small file."""
    here = os.path.realpath(worktrees)
    sid = folder.root.name
    try:
        root = trees.recorded_root(folder.git / "private")
    except DamagedWorktree:
        return ""  # its own trouble, which names itself when the worktree is needed
    if root is None:
        if intent is None or not intent.worktree:
            return ""
        root = Path(intent.worktree)
        if not os.path.isdir(root.parent):  # the folder it was meant for is gone, so it is made here
            return ""
    if os.path.realpath(root.parent) == here:
        if root.name == sid:
            return ""
        return (
            f"its worktree is {root}, that of session {root.name}: its folder is a copy of that session's. "
            "Here it can be looked at; watchfloor rm --force removes the copy only"
        )
    return (
        f"its worktree is {root}, outside this state folder: it belongs to the fleet that this one was copied or moved"
        " from. Here it can be looked at; where that fleet is gone, watchfloor adopt takes it over; watchfloor rm"
        " --force removes it from here only"
    )
