"""The policy that a repository brings along: read once, out of the commit that a session begins from, where no agent of
this session can have written it.
"""

from __future__ import annotations

import hashlib

from harness.events import types as t
from harness.policy import repository
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.protected import restore

_TOLD = 20
"""Warnings of one file; the record of it has all of them."""


def at_start(tree: Worktree) -> list[t.Body]:
    """The records of a new session: the policy, and a warning for what of it does not count. Blocking; raises
    GitFailed.
    """
    data = restore.at_base(tree, repository.PATH, repository.MOST_BYTES)
    if data is None:
        return []
    if len(data) > repository.MOST_BYTES:
        text = ""
        ignored = [f"{repository.PATH} is larger than {repository.MOST_BYTES} bytes; none of it counts"]
    else:
        text = data.decode("utf-8", "replace")
        ignored = list(repository.tightening(text).ignored)
    sha = hashlib.sha256(data).hexdigest()
    read = t.PolicyRead(path=repository.PATH, sha=sha, text=text, ignored=ignored)
    told = [t.HarnessNote(level="warning", text=line[:500], component="policy") for line in ignored]
    return [read, *told[:_TOLD]]
