"""Whether what was merged still stands in its branch. Blocking."""

from __future__ import annotations

from pathlib import Path

from harness.workspace.git.errors import WorkspaceError
from harness.workspace.git.run import Git, open_repository

_TIMEOUT_S = 10.0
_MOST_TURNS = 20
"""So often a revert may itself be reverted."""


def tips(repo: Path) -> dict[str, str]:
    """The commit that each branch of a repository stands on; empty when nobody can tell."""
    try:
        common = open_repository(repo).common
        listed = Git(common).text(
            "for-each-ref", "--format=%(objectname) %(refname:lstrip=2)", "refs/heads", timeout=_TIMEOUT_S
        )
    except (OSError, WorkspaceError):
        return {}
    pairs = (line.partition(" ") for line in listed.split("\n"))
    return {name: commit for commit, _, name in pairs if name}


def stands(repo: Path, commit: str, tip: str) -> bool:
    """False when a branch at ``tip`` has a merged ``commit`` no more, or commits of its own that revert it by name.
    Where nobody can tell, it stands.
    """
    try:
        git = Git(open_repository(repo).common)
        if git.commit(tip) is None:
            return True
        if git.call("merge-base", "--is-ancestor", commit, tip, ok=(0, 1, 128), timeout=_TIMEOUT_S)[0] != 0:
            return False
        return not _reverted(git, commit, tip)
    except (OSError, WorkspaceError):
        return True


def _reverted(git: Git, commit: str, tip: str) -> bool:
    """Whether the newest commit that says it reverts this one holds: none reverts that in its turn."""
    reverted = False
    for _ in range(_MOST_TURNS):
        found = git.text(
            "log",
            "--max-count=1",
            "--no-show-signature",
            "--fixed-strings",
            f"--grep=This reverts commit {commit}",
            "--format=%H",
            f"{commit}..{tip}",
            timeout=_TIMEOUT_S,
        )
        if not found:
            break
        reverted = not reverted
        commit = found
    return reverted
