"""What is left of a session that cannot be examined: named before anything is deleted, then deleted without reading any
of it.

Where its worktree lies is our own rule and its log's word, never that of a record that may be damaged. Its branch is
not touched: what was carried out to the repository stays there.
"""

from __future__ import annotations

import contextlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from harness.domain.text.formatting import counted
from harness.workspace.git.discard import discard
from harness.workspace.git.errors import GitFailed, WorkspaceError
from harness.workspace.git.locks import repository_lock
from harness.workspace.git.run import Git, open_repository

_COUNTED = 10_000


@dataclass(frozen=True, slots=True)
class Leftovers:
    """A session's worktree and git folder, and the repository and branch its log names (None and empty when it names
    none).
    """

    worktree: Path
    git: Path
    repo: Path | None
    branch: str

    @property
    def there(self) -> bool:
        """True while there is anything to delete."""
        return os.path.lexists(self.worktree) or os.path.lexists(self.git)

    def named(self) -> list[str]:
        """What deleting would lose, one phrase each (blocking)."""
        found = [f"{_amount(self.worktree)} in its worktree {self.worktree}"] if os.path.lexists(self.worktree) else []
        if os.path.lexists(self.git):
            found.append(f"what was staged or committed and not yet carried out, in {self.git}")
        return found

    def delete(self) -> list[str]:
        """Delete the worktree and git's record of it; what was lost and what stays, one phrase each. The git folder
        goes with the session's.

        Raises OSError when the worktree cannot be deleted.
        """
        told = self.named()
        if self.repo is None:
            discard(self.worktree)
            return told
        try:
            repository = open_repository(self.repo)
            git = Git.of(repository.common)
            with repository_lock(repository.common, self.worktree.parent):
                discard(self.worktree)
                with contextlib.suppress(GitFailed):
                    git.run("worktree", "remove", "--force", "--force", "--end-of-options", str(self.worktree))
                stays = self.branch and git.commit(f"refs/heads/{self.branch}")
        except WorkspaceError as exc:
            discard(self.worktree)
            return [*told, f"git's record of the worktree may be left in the repository: {exc}"]
        return [*told, f"branch {self.branch} stays in {self.repo} at {stays[:12]}"] if stays else told


def _amount(folder: Path) -> str:
    """How many files a folder holds, counted up to a limit, without following or opening any."""
    try:
        if not stat.S_ISDIR(folder.lstat().st_mode):
            return "a file that is no folder"
    except OSError:
        return "something"
    count = 0
    pending = [str(folder)]
    partly = False
    while pending and count < _COUNTED:
        try:
            with os.scandir(pending.pop()) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        pending.append(entry.path)
                    else:
                        count += 1
        except OSError:
            partly = True
    least = "at least " if pending or partly else ""
    return f"{least}{counted(count, 'file')}"
