"""What a push brings and takes away, read from real repositories."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.domain.actions.action import Profile, PushAction
from harness.domain.actions.destination import Destination, Refspec
from harness.workspace.facts.outgoing import MOST_COMMITS, MOST_FILES, outgoing
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.tree import worktrees
from tests.fleetlib import git
from tests.process.undolib import repository

REF = "refs/heads/topic"


@pytest.fixture
def tree(tmp_path: Path) -> Worktree:
    repo = repository(tmp_path / "repo", {"README.md": "# Thing\n"})
    return worktrees.create(
        repo, tmp_path / "state" / "worktrees" / "s1", "watchfloor/s1", tmp_path / "state" / "sessions" / "s1" / "git"
    )


def commit(tree: Worktree, subject: str, files: dict[str, str]) -> str:
    for name, text in files.items():
        (tree.repo / name).write_text(text)
    git(tree.repo, "add", "-A")
    git(tree.repo, "commit", "-q", "--allow-empty", "-m", subject)
    return git(tree.repo, "rev-parse", "HEAD").strip()


def push(sha: str, old: str = "absent") -> PushAction:
    to = Destination(url="/srv/r.git", refspecs=(Refspec(sha, REF, old),))
    return PushAction(tool="exec", sandbox=Profile(worktree="/w"), argv=("git", "push"), remote="origin", to=to)


def test_a_new_branch_brings_what_came_after_the_start_or_what_the_remote_was_seen_to_hold(tree: Worktree) -> None:
    first = commit(tree, "One | two", {"a b.txt": "1\n2\n", "ü\tx": "x\n"})
    second = commit(tree, "Second", {"bin": "\0\1", "README.md": "# Other\n"})
    (found,) = outgoing(tree, push(second))
    assert found.new
    assert not found.problem
    assert [(c.sha, c.subject) for c in found.commits] == [(second, "Second"), (first, "One | two")]
    assert {(f.path, f.added, f.removed) for f in found.commits[0].files} == {("README.md", 1, 1), ("bin", -1, -1)}
    assert {f.path for f in found.commits[1].files} == {"a b.txt", '"ü\\tx"'}
    assert "where this session began" in found.against
    git(tree.repo, "update-ref", "refs/remotes/origin/main", first)
    (found,) = outgoing(tree, push(second))
    assert [c.sha for c in found.commits] == [second]
    assert "last seen" in found.against


def test_what_stands_there_is_compared_and_what_it_loses_is_named(tree: Worktree) -> None:
    old = commit(tree, "Theirs", {"t": "t\n"})
    git(tree.repo, "reset", "-q", "--hard", tree.base)
    new = commit(tree, "Ours", {"o": "o\n"})
    (found,) = outgoing(tree, push(new, old))
    assert [c.subject for c in found.commits] == ["Ours"]
    assert [c.subject for c in found.lost] == ["Theirs"]
    assert found.refused, "nothing forces it"
    forced = push(new, old)
    (found,) = outgoing(tree, replace(forced, to=replace(forced.to, force=True)))
    assert ([c.subject for c in found.lost], found.refused) == (["Theirs"], False)
    (found,) = outgoing(tree, push(new, "e" * 40))
    assert "not known here" in found.problem
    assert [c.subject for c in found.commits] == ["Ours"]
    (found,) = outgoing(tree, push(old, old))
    assert not found.commits
    assert not found.problem


def test_many_commits_and_files_are_counted_and_nothing_breaks(tree: Worktree) -> None:
    commit(tree, "\x1b[2J\x01 hostile\u202e " + "s" * 2000, {f"f{n}": "x\n" for n in range(MOST_FILES + 5)})
    for n in range(MOST_COMMITS + 2):
        commit(tree, f"Commit {n}", {})
    last = commit(tree, "Last", {})
    (found,) = outgoing(tree, push(last))
    assert len(found.commits) == MOST_COMMITS
    assert found.more == 4
    (found,) = outgoing(tree, push("f" * 40))
    assert found.problem, "a commit that is not there is a sentence, not an exception"
    git(tree.repo, "update-ref", "refs/remotes/origin/main", f"{last}~{MOST_COMMITS + 3}~1")
    (found,) = outgoing(tree, push(git(tree.repo, "rev-parse", f"{last}~{MOST_COMMITS + 3}").strip()))
    assert found.commits[0].more == 5
    assert len(found.commits[0].subject) == 300
