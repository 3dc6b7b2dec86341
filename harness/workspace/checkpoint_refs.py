"""Checkpoints in the repository: commits of a session's files on refs of its own, which no agent sees and no other
branch holds.

What goes into a commit comes as a stream from the vault (`harness.vault.export`): git opens no file of the worktree.
Each commit stands on what the branch stood on, never on the checkpoint before, so that one can go without the others.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection
from dataclasses import replace
from pathlib import Path

from harness.workspace.errors import CannotKeep
from harness.workspace.git import Git
from harness.workspace.private import Worktree
from harness.workspace.scratch import scratch

REFS = "refs/watchfloor/checkpoints/"
_WHO = "Watchfloor <keep@watchfloor.invalid>"
_MADE = "refs/heads/made"
"""The name of a new commit in a scratch repository of ours, until its ref holds it."""
_PLAIN = re.compile(r"[^\x20-\x7e]+")
_SETTINGS = (("fastimport.unpackLimit", "1"), ("core.protectHFS", "false"), ("core.protectNTFS", "false"))


def ref(sid: str, number: int) -> str:
    """The ref of a session's checkpoint."""
    return f"{REFS}{sid}/{number}"


def head(parent: str, message: str) -> str:
    """The lines before the changes of a stream that makes a commit over ``parent``; `store` says where it goes."""
    text = _PLAIN.sub("?", message)[:200] + "\n"
    return f"commit {_MADE}\ncommitter {_WHO} {int(time.time())} +0000\ndata {len(text)}\n{text}\nfrom {parent}\n"


def ground(tree: Worktree, commit: str) -> str:
    """The line of a stream that begins with the files of a commit; empty when that is no longer there."""
    status, out = Git(tree.common).call(
        "rev-parse", "--quiet", "--verify", "--end-of-options", f"{commit}^{{tree}}", ok=(0, 1, 128)
    )
    return f'M 040000 {out.decode().strip()} ""\n' if status == 0 else ""


def store(tree: Worktree, name: str, stream: Path) -> str:
    """Make the commit that a whole stream describes and have ref ``name`` hold it; returns the commit.

    Repeating it replaces what an attempt that died left. Raises GitFailed, CannotKeep, OSError.
    """
    with scratch(tree.common, tree.private.parent) as made, stream.open("rb") as file:
        git = made.storing
        git = replace(git, extra=(*git.extra, *_SETTINGS))
        git.run("fast-import", "--quiet", "--done", "--force", stdin=file.fileno())
        commit = git.commit(_MADE)
    if commit is None:
        raise CannotKeep(f"git made no commit for {name}")
    repository = Git(tree.common)
    repository.run("update-ref", "-m", "watchfloor: checkpoint of a session", name, commit)
    # a `gc --prune=now` may have taken the new objects just before the ref held them
    repository.run("rev-list", "--objects", "--quiet", commit, "--not", f"{commit}^")
    return commit


def drop(common: Path, sid: str, keep: Collection[int] = ()) -> int:
    """Delete every checkpoint ref of a session but those numbers; returns how many. Raises GitFailed."""
    git = Git(common)
    stays = {ref(sid, number) for number in keep}
    gone = [name for name in standing(git, sid) if name not in stays]
    for name in gone:
        git.run("update-ref", "-d", name)
    return len(gone)


def standing(git: Git, sid: str) -> list[str]:
    """The checkpoint refs of a session. Raises GitFailed."""
    return git.text("for-each-ref", "--format=%(refname)", f"{REFS}{sid}/").split()
