"""Whether the ground under a session stands: git, its repository, its worktree, its private folder.

Nothing an agent can write decides it.
"""

from __future__ import annotations

from pathlib import Path

from harness.linux.scarce import scarce
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.git.run import Git
from harness.workspace.private_git import private_gitdir
from harness.workspace.tree.worktrees import open_worktree


def ailing(private: Path) -> str:
    """What of the harness's own is broken under the session of this private folder, in git's own words where git
    speaks; empty when all of it works.

    Blocking; raises OSError, WorkspaceError while the system has nothing to look with. It looks at what only we and the
    user write, so an agent that spoils its own repository is never taken for a broken git.
    """
    try:
        tree = open_worktree(private)
        private_gitdir.prepare(tree)
        if Git.of(tree.common).commit(tree.base) is None:
            return f"commit {tree.base[:12]}, from which it started, is no longer in {tree.repo}"
    except WorkspaceError as exc:
        if scarce(exc):
            raise
        return str(exc)
    return ""
