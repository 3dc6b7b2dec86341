"""What a session made: the files of its branch that are others than those it began from, with their hashes. No file of
the worktree is opened; git reads the repository's own objects. Blocking.
"""

from __future__ import annotations

import hashlib

from harness.views.score_views import Artifact, Artifacts
from harness.workspace.git.run import Git
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.tree.scan import GITLINK, tip

MOST = 1000
"""Files that are listed; there may be more."""


def artifacts(tree: Worktree) -> Artifacts:
    """What the session's branch has against the commit it began from. Raises GitFailed."""
    git = Git(tree.common)
    commit = tip(tree)
    told = git.names("diff-tree", "-r", "-z", "--no-renames", "--raw", "--abbrev=64", tree.base, commit)
    pairs = sorted(zip(told[1::2], told[0::2], strict=True))
    return Artifacts(commit, len(pairs), tuple(_artifact(git, path, about) for path, about in pairs[:MOST]))


def _artifact(git: Git, path: str, about: str) -> Artifact:
    _, mode, _, oid, how = about.split(" ")
    name = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    if how == "D" or mode == GITLINK:
        return Artifact(name, how, 0, "")
    body = git.run("cat-file", "blob", oid)
    return Artifact(name, how, len(body), hashlib.sha256(body).hexdigest())
