"""The refs that an agent made in its own git directory (branches, tags, its stash, notes), and what only they hold.
Blocking.

They are files of a folder that the agent writes: read within limits, and of what they name nothing is believed that git
does not find among the objects.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from harness.executor import preconditions
from harness.linux import safe_files
from harness.workspace.git.errors import GitFailed
from harness.workspace.git.untrusted_dir import Ground, Kind
from harness.workspace.private_git import private_gitdir, shown_repository
from harness.workspace.private_git.private_gitdir import Worktree

_MOST = 500
_MOST_FOLDERS = 200
_MOST_BYTES = 64 << 20
_NAMED = 5
_HEX = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_KINDS = {"refs/heads/": "branch ", "refs/tags/": "tag ", "refs/notes/": "notes "}
_PASSING = ("refs/bisect/", "refs/rewritten/", "refs/worktree/", "refs/remotes/")
"""What git keeps for the time of one operation, or of a remote."""


class OwnRef(NamedTuple):
    """A ref of the agent's, in words, and the object it names."""

    told: str
    oid: str


def of(tree: Worktree) -> list[OwnRef]:
    """The refs in which the agent's git directory differs from the repository, in the order of their names."""
    shown = shown_repository.shown_refs(tree.private)
    session = f"refs/heads/{tree.branch}"
    found = dict[str, str]()
    for name, oid in _all(tree.private):
        if shown.get(name) != oid and name != session and not name.startswith(_PASSING):
            found[name] = oid
    return [OwnRef(_told(name), oid) for name, oid in sorted(found.items())]


def _all(private: Path) -> Iterator[tuple[str, str]]:
    try:
        packed = shown_repository.parse(safe_files.read_beneath(private, "packed-refs", _MOST_BYTES))
    except OSError:
        packed = {}
    loose = {name: preconditions.ref(str(private), name) for name in _loose(private)}
    for name, oid in {**packed, **loose}.items():
        if _HEX.fullmatch(oid):
            yield name, oid


def _loose(private: Path) -> list[str]:
    found: list[str] = []
    pending = ["refs"]
    try:
        with Ground(private) as ground:
            for _ in range(_MOST_FOLDERS):
                if not pending or len(found) >= _MOST:
                    break
                folder = pending.pop()
                for item in ground.items(folder):
                    if item.kind is Kind.FOLDER:
                        pending.append(f"{folder}/{item.name}")
                    elif item.kind is Kind.FILE and not item.name.endswith(".lock"):
                        found.append(f"{folder}/{item.name}")
    except OSError:
        return found
    return found[:_MOST]


def _told(name: str) -> str:
    if name == "refs/stash":
        return "its stash"
    kind = next((one for one in _KINDS if name.startswith(one)), "")
    return f"{_KINDS.get(kind, '')}{name.removeprefix(kind)}"


def only_there(tree: Worktree) -> list[OwnRef]:
    """Those of them whose commits the repository has not: neither the session's branch nor another one. Raises
    GitFailed, PublishFailed.
    """
    refs = of(tree)
    if not refs:
        return []
    with tempfile.TemporaryDirectory(prefix="refs-", dir=tree.private.parent) as name:
        git = private_gitdir.source(tree, Path(name)).git
        left: list[OwnRef] = []
        for ref in refs:
            try:
                if git.commit(ref.oid) and git.text("rev-list", "--max-count=1", ref.oid, "--not", "--all"):
                    left.append(ref)
            except GitFailed:  # it names what is not there
                continue
        return left


def told(refs: list[OwnRef]) -> str:
    """Their names, for a sentence."""
    names = [ref.told for ref in refs[:_NAMED]]
    return ", ".join(names) + (f" and {len(refs) - _NAMED} more" if len(refs) > _NAMED else "")
