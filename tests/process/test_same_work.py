"""Work that a person took by another way than a merge is not lost with its branch; what is only here is."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.workspace.git.errors import UnsavedWork
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.tree import remove
from tests.process.test_workspace_worktrees import git, repository, session

LINES = "".join(f"line {n}\n" for n in range(40))


@pytest.fixture
def tree(tmp_path: Path) -> Worktree:
    """A session with three commits: two on one file, one that adds another."""
    made = session(tmp_path, repository(tmp_path / "repo", **{"a.txt": LINES, "b.txt": "b\n"}))
    for name, text in (("a.txt", LINES.replace("line 3\n", "three\n")), ("new.py", "if x:\n    y\n")):
        commit(made.root, name, text)
    commit(made.root, "a.txt", LINES.replace("line 3\n", "three\n").replace("line 30\n", "thirty\n"))
    return made


def commit(folder: Path, name: str, text: str) -> None:
    (folder / name).write_text(text)
    git(folder, "add", "-A")
    git(folder, "commit", "-q", "-m", f"{name} anew")


def test_a_squash_by_hand_has_the_work(tree: Worktree) -> None:
    assert remove.unpushed(tree) == 3
    git(tree.repo, "merge", "-q", "--squash", tree.branch)
    git(tree.repo, "commit", "-q", "-m", "All of it")
    assert remove.unpushed(tree) == 0
    assert remove.remove(tree, "s1") == []


def test_a_squash_has_the_work_where_lines_beside_it_changed_before_and_after(tree: Worktree) -> None:
    commit(tree.repo, "a.txt", LINES.replace("line 5\n", "five\n"))
    git(tree.repo, "merge", "-q", "--squash", tree.branch)
    git(tree.repo, "commit", "-q", "-m", "All of it")
    commit(tree.repo, "a.txt", "something else\n")
    assert remove.unpushed(tree) == 0


def test_what_came_after_a_squash_is_still_only_here(tree: Worktree) -> None:
    git(tree.repo, "merge", "-q", "--squash", tree.branch)
    git(tree.repo, "commit", "-q", "-m", "All of it")
    commit(tree.root, "b.txt", "more\n")
    assert remove.unpushed(tree) == 1
    with pytest.raises(UnsavedWork, match="1 commit that is on no other branch"):
        remove.remove(tree, "s1")


def test_picked_and_rebased_commits_have_the_work_each_by_itself(tree: Worktree) -> None:
    commit(tree.repo, "b.txt", "moved on\n")
    git(tree.repo, "cherry-pick", f"{tree.branch}~1")
    assert remove.unpushed(tree) == 2
    git(tree.repo, "checkout", "-q", "-b", "theirs", tree.branch)
    git(tree.repo, "rebase", "-q", "main")
    git(tree.repo, "checkout", "-q", "main")
    git(tree.repo, "update-ref", "refs/remotes/origin/theirs", "theirs")
    git(tree.repo, "branch", "-q", "-D", "theirs")
    assert remove.unpushed(tree) == 0


def test_a_branch_that_took_in_another_has_no_work_in_the_merge(tree: Worktree) -> None:
    commit(tree.repo, "b.txt", "moved on\n")
    git(tree.root, "merge", "-q", "--no-edit", "main")
    git(tree.repo, "cherry-pick", f"{tree.base}..{tree.branch}^1")
    assert remove.unpushed(tree) == 0


def test_a_merge_with_work_of_its_own_is_only_here(tree: Worktree) -> None:
    commit(tree.repo, "b.txt", "moved on\n")
    git(tree.root, "merge", "-q", "--no-commit", "main")
    commit(tree.root, "b.txt", "moved on, with care\n")
    git(tree.repo, "cherry-pick", f"{tree.base}..{tree.branch}^1")
    assert remove.unpushed(tree) == 1


@pytest.mark.parametrize("text", ["if x:\n  y\n", "if x:\ny\n", "if x:\n    y\n\n"])
def test_work_that_differs_by_white_space_is_other_work(tree: Worktree, text: str) -> None:
    git(tree.repo, "cherry-pick", f"{tree.branch}~2", tree.branch)
    commit(tree.repo, "new.py", text)
    assert remove.unpushed(tree) == 1


def test_other_bytes_of_a_binary_file_are_other_work(tree: Worktree) -> None:
    git(tree.repo, "merge", "-q", "--squash", tree.branch)
    git(tree.repo, "commit", "-q", "-m", "All of it")
    commit(tree.root, "image", "\0one")
    commit(tree.repo, "image", "\0two")
    assert remove.unpushed(tree) == 1
    git(tree.repo, "rm", "-q", "image")
    git(tree.repo, "commit", "-q", "-m", "no image")
    git(tree.repo, "cherry-pick", tree.branch)
    assert remove.unpushed(tree) == 0


def test_a_change_that_was_undone_before_anybody_took_it_is_only_here(tree: Worktree) -> None:
    commit(tree.repo, "a.txt", LINES.replace("line 3\n", "3\n"))
    assert remove.unpushed(tree) == 3
