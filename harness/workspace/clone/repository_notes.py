"""What a repository has that a session gets otherwise than its owner, found before anything is made. Blocking; nothing
of the repository runs and nothing is fetched.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from pathlib import Path

from harness.domain.text.formatting import counted
from harness.workspace.clone import filters, submodules
from harness.workspace.git.errors import PartialClone
from harness.workspace.git.run import Git, Repository
from harness.workspace.git.scratch import alternates

_NAMED = 3
_OWN_PROGRAM = (
    "; for new content its program runs in the sandbox, so it must be there ([sandbox] read shows folders), or such a"
    " change stays uncommitted"
)


def look(repository: Repository, commit: str) -> list[str]:
    """A line each: what was found in the commit that a session begins from, and what is done about it.

    Raises PartialClone when files of the commit are not there, GitFailed.
    """
    git = Git.of(repository.git_dir)
    settings = dict(git.configured())
    if fetches(settings):
        _whole(repository, git, commit)
    rows = git.run("ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0")
    notes: list[str] = []
    found = submodules.find(repository, commit, submodules.links_in(rows))
    if there := [one.path for one in found if one.git_dir is not None]:
        notes.append(
            f"{counted(len(there), 'submodule')} ({_some(there)}): their files are in the session's worktree, from your"
            " clone, and what it commits there is kept in your clone, too"
        )
    if lacking := [one.path for one in found if one.git_dir is None]:
        notes.append(
            f"{counted(len(lacking), 'submodule')} ({_some(lacking)}) not in your clone at the recorded commit: empty"
            f" in the session's worktree; fetch with git -C {repository.root} submodule update --init --recursive, then"
            " launch again"
        )
    named = (b"\t" + filters.RULES.encode(), b"/" + filters.RULES.encode())
    rules = [row.split(b"\t", 1)[0].split(b" ")[2].decode() for row in rows if row.endswith(named)]
    if filters.ruled(repository, rules):
        notes += _filtered(repository, commit)
    if settings.get("core.sparsecheckout") == "true":
        notes.append("its checkout is sparse: the session's worktree leaves out the same files")
    if (repository.common / "shallow").is_file():
        notes.append("a shallow clone: the session sees the history that it has, and no more")
    if stores := alternates(repository.common):
        notes.append(f"it borrows objects from {_some([str(s) for s in stores])}: the session reads them there")
    return notes


def fetches(settings: Iterable[str]) -> bool:
    """True when git would ask a remote for missing objects, which no call of ours may."""
    return any(name == "extensions.partialclone" or re.fullmatch(r"remote\..*\.promisor", name) for name in settings)


def _whole(repository: Repository, git: Git, commit: str) -> None:
    listed = git.run("rev-list", "--objects", "--missing=print", "--no-object-names", f"{commit}^{{tree}}")
    if missing := sum(line.startswith(b"?") for line in listed.split(b"\n")):
        raise PartialClone(
            f"{repository.root} is a partial clone and lacks {counted(missing, 'object')} of commit {commit[:12]};"
            f" fetch them, then launch again: {fetching(repository.root, git, commit)}"
        )


def fetching(root: Path, git: Git, commit: str) -> str:
    """The command that brings every file of a commit into a partial clone, all at once."""
    empty = git.text("hash-object", "-t", "tree", "--stdin")
    return f"git -C {root} diff --shortstat {empty} {commit}"


def _filtered(repository: Repository, commit: str) -> list[str]:
    """What a session gets of files behind a filter that the person's git has a program for, or that LFS has."""
    with tempfile.TemporaryDirectory(prefix="watchfloor-look-") as folder:
        found = filters.behind(repository, commit, Path(folder), {filters.LFS, *filters.configured(repository.git_dir)})
    notes: list[str] = []
    for name in dict.fromkeys(one.filter for one in found):
        there = [one.path for one in found if one.filter == name and one.content is not None]
        lacking = [one.path for one in found if one.filter == name and one.content is None]
        if there:
            notes.append(
                f"{counted(len(there), 'file')} ({_some(there)}) behind the filter {name}: the session has what they"
                " hold here and commits what the filter makes of them" + ("" if name == filters.LFS else _OWN_PROGRAM)
            )
        if lacking:
            why = "what they hold is not in your clone"
            mend = f"; git -C {repository.root} lfs pull, then launch again"
            if name != filters.LFS:
                why = "what they hold is not in your checkout as it is committed, or encrypted"
                mend = ""
            notes.append(
                f"{counted(len(lacking), 'file')} ({_some(lacking)}) behind the filter {name}, and {why}: the session"
                f" sees them as they are committed{mend}"
            )
    return notes


def _some(names: list[str]) -> str:
    return ", ".join(names[:_NAMED]) + (", …" if len(names) > _NAMED else "")
