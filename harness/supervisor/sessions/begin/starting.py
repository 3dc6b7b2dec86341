"""Where a session begins that is not to begin from what the checkout shows, and where it may. Blocking."""

from __future__ import annotations

from pathlib import Path

from harness.supervisor.base.errors import OpError
from harness.workspace.git.merge_rules import OWN
from harness.workspace.git.run import Git, open_repository

_LONGEST = 250
_KINDS = ("refs/heads/", "refs/remotes/", "refs/tags/")
_MOST = 500


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


def starts(repo: Path) -> list[str]:
    """Branches, those of remotes and tags, as `starting_at` takes them, each the newest first; sessions' come
    last. Raises WorkspaceError.
    """
    git = Git.of(open_repository(repo).git_dir)
    newest = ("--sort=-creatordate", f"--count={_MOST}", "--format=%(refname)")
    found: list[str] = []
    for kind in _KINDS:
        names = (one.removeprefix(kind) for one in git.text("for-each-ref", *newest, kind).split("\n"))
        found += [one for one in names if one and not one.endswith("/HEAD") and 0 < len(one) <= _LONGEST]
    return sorted(dict.fromkeys(found), key=lambda one: one.startswith(OWN))
