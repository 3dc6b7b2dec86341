"""A repository of a person, a session's worktree of it, and merges of the one into the other, for tests."""

from __future__ import annotations

import os
from pathlib import Path

from harness.checks.protected_files import Rules
from harness.workspace.git.merge_rules import refusal
from harness.workspace.merge import checkout, merge
from harness.workspace.merge.merge import MergePlace, MergeRequest, MergeResult
from harness.workspace.merge.picked import Taken
from harness.workspace.private_git.private_gitdir import Worktree, publish
from tests.process.gittraps import commit_as_agent, git


def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repo"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    for name in ("a.txt", "b.txt", "tests/test_a.py"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(f"{name}\n")
    git(folder, "config", "user.name", "Me")
    git(folder, "config", "user.email", "me@here")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "one")
    return folder


def work(tree: Worktree, name: str, text: str) -> str:
    """The agent commits a file."""
    (tree.root / name).parent.mkdir(exist_ok=True)
    (tree.root / name).write_text(text)
    made = commit_as_agent(tree, name)
    publish(tree)
    return made


def commit(repo: Path, name: str, text: str) -> str:
    """The person commits a file."""
    (repo / name).write_text(text)
    git(repo, "add", name)
    git(repo, "commit", "-qm", f"mine: {name}")
    return git(repo, "rev-parse", "HEAD")


def place_of(tree: Worktree, wish: MergeRequest) -> MergePlace:
    seen, place = merge.survey(tree, "s1", wish)
    assert place is not None
    assert refusal(seen) is None, refusal(seen)
    return place


def made(
    tree: Worktree, how: str = "merge", into: str = "", taken: Taken | None = None, goal: str = "the goal"
) -> tuple[MergePlace, MergeResult]:
    wish = MergeRequest(how, tree.repo, into)
    place = place_of(tree, wish)
    head = git(tree.repo, "rev-parse", tree.branch)
    found = merge.make(tree, place, head, wish, "n", goal, Rules(), taken)
    assert isinstance(found, MergeResult)
    return place, found


def move(tree: Worktree, place: MergePlace, found: MergeResult) -> None:
    checkout.move(place, place.onto, found.commit, "m1", tree.private.parent)


def state(repo: Path) -> tuple[str, ...]:
    """All that a person would see of a checkout."""
    files = {p: p.read_bytes() for p in sorted(repo.rglob("*")) if p.is_file() and ".git" not in p.parts}
    index = git(repo, "ls-files", "-s")
    return (git(repo, "rev-parse", "HEAD"), index, repr(files), repr(sorted(os.listdir(repo / ".git"))))
