"""What the branches of sessions are called, and what a repository has that stands in the way of such a name. Blocking.

A ref is a file and a folder of refs is a folder, so that `watchfloor` and `watchfloor/x` cannot both be branches.
"""

from __future__ import annotations

import os
import stat

from harness.workspace.git.errors import BranchExists
from harness.workspace.git.merge_rules import OWN
from harness.workspace.git.run import Git, common_of

_BRANCHES = "refs/heads/"


def prefix(git: Git) -> tuple[str, str]:
    """(what the branch of a new session begins with, what stands in the way of the usual prefix; empty when nothing
    does). Raises BranchExists when no prefix is free, and GitFailed.
    """
    blocked = [blocking(git, f"{one}x") for one in OWN]
    for one, why in zip(OWN, blocked, strict=True):
        if not why:
            return one, blocked[0]
    listed = " and ".join(dict.fromkeys(blocked))
    raise BranchExists(
        f"sessions work on branches {OWN[0]}NAME or {OWN[1]}NAME, and {listed} of this repository"
        f" {'is' if len({*blocked}) == 1 else 'are'} in the way; rename one: git branch -m"
        f" {blocked[0].removeprefix('branch ')} NEW"
    )


def blocking(git: Git, branch: str) -> str:
    """What stands in the way of a new branch of this name, in words; empty when nothing does. Raises GitFailed.

    Git is asked for the names themselves and for those below them, so it does not matter how many refs there are.
    """
    caseless = git.text("config", "--type=bool", "--get", "core.ignorecase", ok=(0, 1)) == "true"
    parts = branch.split("/")
    above = ["/".join(parts[:count]) for count in range(1, len(parts) + 1)]
    how = ("--ignore-case",) if caseless else ()
    listed = git.text("for-each-ref", "--format=%(refname)", *how, *(f"{_BRANCHES}{one}" for one in above))

    def same(name: str) -> str:
        return name.casefold() if caseless else name

    names = [name.removeprefix(_BRANCHES) for name in listed.split("\n") if name]
    wanted = same(branch)
    for name in names:
        if wanted.startswith(f"{same(name)}/") or same(name) == wanted or same(name).startswith(f"{wanted}/"):
            return f"branch {name}"
    return _file(git, above[:-1])


def _file(git: Git, folders: list[str]) -> str:
    """A file where the ref needs a folder, and that git takes for no branch: an empty ref of a crash, a lock."""
    heads = common_of(git.git_dir) / "refs" / "heads"
    for name in folders:
        try:
            mode = os.lstat(heads / name).st_mode
        except OSError:
            continue
        if not stat.S_ISDIR(mode) and not (stat.S_ISLNK(mode) and (heads / name).is_dir()):
            return f"the file {heads / name}"
    return ""
