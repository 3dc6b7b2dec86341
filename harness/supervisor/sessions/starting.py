"""Where a session begins that is not to begin from what the checkout shows. Blocking."""

from __future__ import annotations

from pathlib import Path

from harness.supervisor.errors import OpError
from harness.workspace.git import Git, open_repository

_LONGEST = 250


def starting_at(repo: Path, name: str) -> str:
    """The commit of this branch, tag or commit; of two things of one name, the branch. Raises OpError ``bad_start``."""
    if len(name) > _LONGEST or not name.isprintable() or name != name.strip():
        told = f"a name of at most {_LONGEST} characters that can be printed, without blanks around it"
        raise OpError("bad_start", f"what it begins from must be {told}")
    git = Git.of(open_repository(repo).git_dir)
    for one in (f"refs/heads/{name}", name):
        if (commit := git.commit(one)) is not None:
            return commit
    hint = f"list them with: git -C {repo} branch --all"
    if git.commit(f"refs/remotes/origin/{name}") is not None:
        hint = f"only the remote has it here: --branch origin/{name}"
    raise OpError("bad_start", f"{name!r} is no branch, tag or commit of {repo}", hint)
