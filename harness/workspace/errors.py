"""What can be wrong with a repository or a worktree; each message names the thing and what to do about it."""

from __future__ import annotations

from collections.abc import Sequence


class WorkspaceError(Exception):
    """Base of all workspace errors. ``code`` is stable and goes over the socket."""

    code = "workspace"


class NotARepository(WorkspaceError):
    code = "not_a_repository"


class NoCommits(WorkspaceError):
    code = "no_commits"


class GitTooOld(WorkspaceError):
    code = "git_too_old"


class GitMissing(WorkspaceError):
    code = "git_missing"


class BranchExists(WorkspaceError):
    code = "branch_exists"


class WorktreeExists(WorkspaceError):
    code = "worktree_exists"


class DamagedWorktree(WorkspaceError):
    code = "damaged_worktree"


class Unexamined(WorkspaceError):
    """Something in a worktree or a private git folder could not be read; the message names it and never holds its content."""

    code = "unexamined"


class PublishFailed(WorkspaceError):
    code = "publish_failed"


class GitFailed(WorkspaceError):
    """A git command failed; the message holds its last lines (untrusted text)."""

    code = "git_failed"

    def __init__(self, command: str, status: int, stderr: str) -> None:
        super().__init__(f"git {command} failed with status {status}: {stderr.strip()[-2000:] or 'no message'}")
        self.command, self.status, self.stderr = command, status, stderr


class UnsavedWork(WorkspaceError):
    """Removal refused: ``files`` have uncommitted changes, ``commits`` are on no other branch or remote."""

    code = "unsaved"

    def __init__(self, files: Sequence[str], commits: int) -> None:
        parts = []
        if files:
            parts.append(f"{len(files)} uncommitted files ({', '.join(files[:5])}{', …' if len(files) > 5 else ''})")
        if commits:
            parts.append(f"{commits} commits that are on no other branch and at no remote")
        super().__init__(f"the worktree holds {' and '.join(parts)}; push or merge them, or remove with force_keep to keep them under refs/watchfloor/kept")
        self.files, self.commits = list(files), commits
