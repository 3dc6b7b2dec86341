"""Checkpoints in a real repository: each holds on to nothing but its files and the branch, and goes alone."""

from __future__ import annotations

from pathlib import Path

from harness.workspace import checkpoint_refs as refs
from harness.workspace.git import Git
from harness.workspace.private import Worktree
from harness.workspace.worktrees import create
from tests.process.undolib import repository


def stored(tree: Worktree, name: str, body: str, ground: str = "", message: str = "m") -> str:
    stream = tree.private.parent / "stream"
    stream.write_text(refs.head(tree.base, message) + (ground or "deleteall\n") + body + "\ndone\n")
    return refs.store(tree, name, stream)


def test_a_ref_is_replaced_thinned_and_removed(tmp_path: Path) -> None:
    repo = repository(tmp_path / "repo", {"a.txt": "alpha\n", "b.txt": "beta\n"})
    tree = create(repo, tmp_path / "trees" / "s1", "watchfloor/s1", tmp_path / "s1" / "git" / "private")
    git = Git(tree.common)
    first = stored(tree, refs.ref("s1", 1), 'M 100644 inline "a.txt"\ndata 2\nA\n\n', message="évil\nfrom HEAD\nname")
    assert git.names("ls-tree", "-r", "-z", "--name-only", first) == ["a.txt"]
    assert git.text("log", "-1", "--format=%B", first).strip() == "?vil?from HEAD?name"
    other = stored(tree, refs.ref("s1", 1), 'M 100644 inline "a.txt"\ndata 2\nB\n\n')
    assert git.commit(refs.ref("s1", 1)) == other, "what an attempt that died left is taken over"
    second = stored(tree, refs.ref("s1", 2), 'M 100644 inline "c"\ndata 1\nc\n', refs.ground(tree, other))
    assert git.names("ls-tree", "-r", "-z", "--name-only", second) == ["a.txt", "c"]
    assert git.text("rev-parse", f"{second}^") == tree.base, "it does not hold the one before"
    third = stored(tree, refs.ref("s2", 1), "")
    assert refs.ground(tree, "0" * 40) == ""
    assert refs.drop(tree.common, "s1", {2}) == 1
    assert refs.standing(git, "s1") == [refs.ref("s1", 2)]
    assert refs.drop(tree.common, "s1") == 1
    assert git.commit(refs.ref("s2", 1)) == third
    assert [path.name for path in tree.common.iterdir() if "crash" in path.name] == []
