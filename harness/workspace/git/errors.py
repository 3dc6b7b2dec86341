"""What can be wrong with a repository or a worktree; each message names the thing and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from harness.domain.text.formatting import counted

_HELD = re.compile(r"'([^'\n]+\.lock)': File exists")


def held(said: str) -> str:
    """The lock file that another git has or left behind, in what git says when that is why it failed; else empty."""
    found = _HELD.search(said)
    return found[1] if found is not None else ""


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


class PartialClone(WorkspaceError):
    code = "partial_clone"


class BranchExists(WorkspaceError):
    code = "branch_exists"


class WorktreeExists(WorkspaceError):
    code = "worktree_exists"


class DamagedWorktree(WorkspaceError):
    code = "damaged_worktree"


class Unexamined(WorkspaceError):
    """Something in a worktree or a private git folder could not be read; the message names it and never holds its
    content.
    """

    code = "unexamined"


class PublishFailed(WorkspaceError):
    code = "publish_failed"


class GitFailed(WorkspaceError):
    """A git command failed; the message holds its last lines (untrusted text)."""

    code = "git_failed"

    def __init__(self, command: str, status: int, stderr: str) -> None:
        super().__init__(f"git {command} failed with status {status}: {stderr.strip()[-2000:] or 'no message'}")
        self.command = command
        self.status = status
        self.stderr = stderr


class TooMuchToRead(WorkspaceError):
    code = "too_much"


class UnsavedWork(WorkspaceError):
    """Removal refused: what would be lost, by name. ``commits`` counts those on no other branch or tag and at no
    remote.

    ``files`` are uncommitted or untracked, ``nested`` are repositories inside the worktree (their names end with
    ``/``), ``ignored`` lie outside ignored folders, ``reproducible`` counts files in ignored folders, which are never
    kept. ``why`` is a further reason.
    """

    code = "unsaved"

    def __init__(
        self,
        files: Sequence[str],
        commits: int,
        nested: Sequence[str] = (),
        ignored: Sequence[str] = (),
        reproducible: int = 0,
        why: str = "",
    ) -> None:
        parts = [why] if why else []
        parts += [
            _named(names, one if len(names) == 1 else many)
            for names, one, many in (
                (files, "uncommitted file", "uncommitted files"),
                (nested, "nested repository", "nested repositories"),
                (ignored, "ignored file", "ignored files"),
            )
            if names
        ]
        if commits:
            verb = "is" if commits == 1 else "are"
            parts.append(f"{counted(commits, 'commit')} that {verb} on no other branch and at no remote")
        goes = "goes" if reproducible == 1 else "go"
        note = f" ({counted(reproducible, 'file')} in ignored folders {goes} in any case)" if reproducible else ""
        super().__init__(f"the worktree holds {' and '.join(parts)}{note}")
        self.files = list(files)
        self.commits = commits
        self.nested = list(nested)
        self.ignored = list(ignored)
        self.reproducible = reproducible


class CannotKeep(WorkspaceError):
    """Keeping was refused before anything was lost; the message names what stands in the way and what to do."""

    code = "cannot_keep"


class MovesSubmodule(WorkspaceError):
    """The work has a submodule at another commit, which lies in no object store of ours."""

    code = "submodule"


def _named(names: Sequence[str], what: str) -> str:
    return f"{len(names)} {what} ({', '.join(names[:5])}{', …' if len(names) > 5 else ''})"
