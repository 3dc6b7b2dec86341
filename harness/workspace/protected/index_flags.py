"""Flags in the index of a session's private git folder by which git looks past changes: taken back before a check, so
that `git diff --exit-code` says what is so. Blocking.
"""

from __future__ import annotations

import os
from pathlib import Path

from harness.linux import safe_files
from harness.workspace.git import index_stamps
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.protected.aside import Aside

MAX_INDEX = 256 << 20
"""Bytes of an index that is read; one of a larger repository stays as it is."""


def reset(tree: Worktree, aside: Path) -> bool:
    """Have git look at each file again that its agent hid from it (``assume-unchanged``, ``skip-worktree``); what a
    sparse checkout of the user leaves out stays left out. True when there was one. Raises OSError.
    """
    try:
        times = os.stat(tree.private / "index", follow_symlinks=False).st_mtime_ns
        data = safe_files.read_beneath(tree.private, "index", MAX_INDEX)
    except (safe_files.Unreadable, FileNotFoundError):
        return False
    oid_bytes = len(tree.base) // 2
    spared = {path for path, one in index_stamps.read(tree.admin / "index", oid_bytes).items() if one.skip}
    made = index_stamps.looking(data, oid_bytes, spared)
    if made == data:
        return False
    aside.mkdir(mode=0o700, parents=True, exist_ok=True)
    with Aside(tree.private, aside) as ground:
        ground.write("index", made, times)
    return True
