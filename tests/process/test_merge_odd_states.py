"""Merges into checkouts and from branches in the states that real repositories are in."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from harness.events.work import merge_events as m
from harness.workspace.git.merge_rules import refusal
from harness.workspace.merge import checkout, merge
from harness.workspace.merge.checkout import CannotMove
from harness.workspace.merge.merge import MergePlace, MergeRequest, MergeResult
from harness.workspace.merge.picked import Taken
from harness.workspace.private_git.private_gitdir import Worktree
from tests.process.gittraps import git, session
from tests.process.mergelib import commit, made, move, repository, state, work


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path)


@pytest.fixture
def tree(tmp_path: Path, repo: Path) -> Worktree:
    return session(tmp_path, repo)


@pytest.mark.parametrize(("folder", "file"), [(0o755, 0o644), (0o775, 0o664), (0o700, 0o600)])
def test_what_is_written_for_a_person_is_as_readable_as_what_their_own_git_writes(
    repo: Path, tree: Worktree, folder: int, file: int
) -> None:
    """The supervisor keeps all of its own files to itself; those of the checkout and its git directory are not."""
    (repo / ".git" / "objects").chmod(folder)
    work(tree, "new/deep.txt", "agent\n")
    work(tree, "a.txt", "agent\n")
    commit(repo, "b.txt", "mine\n")
    before = os.umask(0o077)
    try:
        place, found = made(tree, "squash")
        move(tree, place, found)
    finally:
        os.umask(before)
    written = found.commit

    def mode(path: Path) -> int:
        return stat.S_IMODE(path.stat().st_mode)

    assert (mode(repo / "new" / "deep.txt"), mode(repo / "a.txt"), mode(repo / "new")) == (file, file, folder)
    assert mode(repo / ".git" / "refs" / "heads" / "main") == file
    assert mode(repo / ".git" / "objects" / written[:2] / written[2:]) == file & 0o444


def again(repo: Path, tree: Worktree, how: str, taken: Taken) -> tuple[MergePlace, MergeResult]:
    """The next merge, and what it leaves in the checkout."""
    place, found = made(tree, how, taken=taken)
    move(tree, place, found)
    assert git(repo, "status", "--porcelain") == ""
    return place, found


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
@pytest.mark.parametrize("first", ["squash", "rebase"])
def test_work_that_went_on_after_it_was_taken_is_merged_without_what_was_taken(
    repo: Path, tree: Worktree, first: str, how: str
) -> None:
    work(tree, "a.txt", "agent 1\n")
    work(tree, "a.txt", "agent 2\n")
    commit(repo, "b.txt", "mine\n")
    place, found = made(tree, first)
    move(tree, place, found)
    taken = Taken(git(repo, "rev-parse", tree.branch), found.commit)
    seen, _ = merge.survey(tree, "s1", MergeRequest(how, repo), taken)
    no = refusal(seen)
    assert no is not None
    assert no.code == "nothing"

    work(tree, "a.txt", "agent 3\n")
    commit(repo, "b.txt", "mine again\n")
    seen, _ = merge.survey(tree, "s1", MergeRequest(how, repo), taken)
    assert seen.commits == 1
    again(repo, tree, how, taken)
    assert ((repo / "a.txt").read_text(), (repo / "b.txt").read_text()) == ("agent 3\n", "mine again\n")


def test_a_merge_that_was_taken_back_can_be_made_again(repo: Path, tree: Worktree) -> None:
    work(tree, "a.txt", "agent 1\n")
    commit(repo, "b.txt", "mine\n")
    place, found = made(tree, "squash")
    move(tree, place, found)
    taken = Taken(git(repo, "rev-parse", tree.branch), found.commit)
    git(repo, "reset", "-q", "--keep", "HEAD@{1}")
    assert (repo / "a.txt").read_text() == "a.txt\n"
    again(repo, tree, "squash", taken)
    assert (repo / "a.txt").read_text() == "agent 1\n"


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
@pytest.mark.parametrize("first", ["squash", "rebase"])
def test_what_a_revert_took_back_is_merged_once_more(repo: Path, tree: Worktree, first: str, how: str) -> None:
    work(tree, "a.txt", "agent 1\n")
    work(tree, "new.txt", "agent 2\n")
    commit(repo, "b.txt", "mine\n")
    place, found = made(tree, first)
    move(tree, place, found)
    taken = Taken(git(repo, "rev-parse", tree.branch), found.commit, place.onto)
    commit(repo, "b.txt", "mine again\n")
    git(repo, "revert", "--no-edit", f"{place.onto}..{found.commit}")
    assert not (repo / "new.txt").exists()
    again(repo, tree, how, taken)
    assert [(repo / name).read_text() for name in ("a.txt", "new.txt", "b.txt")] == [
        "agent 1\n",
        "agent 2\n",
        "mine again\n",
    ]


@pytest.mark.parametrize("by_hand", [False, True])
def test_what_stands_or_was_changed_by_hand_is_not_merged_once_more(repo: Path, tree: Worktree, by_hand: bool) -> None:
    work(tree, "a.txt", "agent 1\n")
    work(tree, "new.txt", "agent 2\n")
    place, found = made(tree, "squash")
    move(tree, place, found)
    taken = Taken(git(repo, "rev-parse", tree.branch), found.commit, place.onto)
    commit(repo, "a.txt", "mine instead\n" if by_hand else "a.txt\n")
    seen, _ = merge.survey(tree, "s1", MergeRequest("squash", repo), taken)
    no = refusal(seen)
    assert (no.code, no.hint) == ("nothing", "there is nothing to merge") if no is not None else False


def test_a_reverted_merge_whose_commits_are_all_there_says_how_to_have_it_again(repo: Path, tree: Worktree) -> None:
    work(tree, "a.txt", "agent 1\n")
    commit(repo, "b.txt", "mine\n")
    place, found = made(tree, "merge")
    move(tree, place, found)
    taken = Taken(git(repo, "rev-parse", tree.branch), found.commit, place.onto)
    git(repo, "revert", "--no-edit", "-m", "1", "HEAD")
    seen, _ = merge.survey(tree, "s1", MergeRequest("squash", repo), taken)
    no = refusal(seen)
    assert no is not None
    assert "later commits took back what they changed" in no.message
    assert no.hint == f"revert those: git -C {repo} revert COMMIT"


def test_a_checkout_whose_git_folder_lies_apart_is_not_called_by_that_folder(tmp_path: Path) -> None:
    first = repository(tmp_path)
    apart = tmp_path / "store.git"
    git(first, "init", "-q", "--separate-git-dir", str(apart))
    linked = tmp_path / "linked"
    git(first, "worktree", "add", "-q", str(linked), "-b", "side")
    tree = session(tmp_path, linked)
    work(tree, "a.txt", "agent 1\n")
    seen, _ = merge.survey(tree, "s1", MergeRequest("merge", linked, "main"))
    no = refusal(seen)
    assert no is not None
    assert f"git names only the git folder {apart}" in no.message
    assert no.hint == "merge there: watchfloor merge --repo FOLDER s1"


def rebasing(repo: Path) -> None:
    """A rebase of main that waits for its owner."""
    git(repo, "switch", "-qc", "other", "HEAD")
    commit(repo, "a.txt", "theirs\n")
    git(repo, "switch", "-q", "main")
    commit(repo, "a.txt", "mine\n")
    with pytest.raises(Exception, match="rebase"):
        git(repo, "rebase", "other")


def bisecting(repo: Path) -> None:
    for number in range(4):
        commit(repo, "b.txt", f"{number}\n")
    for words in (("start",), ("bad",), ("good", "HEAD~3")):
        git(repo, "bisect", *words)


@pytest.mark.parametrize(("into", "where"), [("", "repo"), ("main", "repo"), ("main", "other")])
def test_a_branch_that_a_rebase_will_move_is_left_to_it(
    tmp_path: Path, repo: Path, tree: Worktree, into: str, where: str
) -> None:
    """Git moves it when the rebase ends, and cannot end it once the branch stands elsewhere."""
    work(tree, "new.txt", "agent\n")
    rebasing(repo)
    other = tmp_path / "second"
    git(repo, "worktree", "add", "-q", "--detach", str(other))
    before = state(repo)
    seen, _ = merge.survey(tree, "s1", MergeRequest("merge", repo if where == "repo" else other, into))
    no = refusal(seen)
    assert no is not None
    assert (no.code, "a rebase" in no.message, str(repo) in no.message) == ("busy", True, True)
    assert state(repo) == before
    seen, place = merge.survey(tree, "s1", MergeRequest("merge", repo, "other"))
    assert place is not None
    assert refusal(seen) is None, "another branch is none of its business"
    git(repo, "checkout", "-q", "--theirs", "a.txt")
    git(repo, "add", "a.txt")
    git(repo, "-c", "core.editor=true", "rebase", "--continue")
    assert git(repo, "branch", "--show-current") == "main"


def test_a_bisect_is_named_instead_of_a_missing_branch(repo: Path, tree: Worktree) -> None:
    work(tree, "new.txt", "agent\n")
    bisecting(repo)
    seen, _ = merge.survey(tree, "s1", MergeRequest("merge", repo))
    no = refusal(seen)
    assert no is not None
    assert no.message == f"a bisect is under way in {repo}"


def test_a_folder_becomes_a_file_and_a_file_a_folder(repo: Path, tree: Worktree) -> None:
    (tree.root / "tests" / "test_a.py").unlink()
    (tree.root / "tests").rmdir()
    (tree.root / "tests").write_text("a file now\n")
    (tree.root / "a.txt").unlink()
    (tree.root / "a.txt").mkdir()
    (tree.root / "a.txt" / "in").write_text("it is a folder\n")
    merge.commit_all(tree, "swapped")
    place, found = made(tree)
    (repo / "tests" / "kept.log").write_text("in no commit\n")
    before = state(repo)
    with pytest.raises(CannotMove, match=r"tests/kept\.log .* is in no commit"):
        move(tree, place, found)
    assert state(repo) == before
    (repo / "tests" / "kept.log").unlink()
    move(tree, place, found)
    assert (repo / "tests").read_text() == "a file now\n"
    assert (repo / "a.txt" / "in").read_text() == "it is a folder\n"
    assert git(repo, "status", "--porcelain") == ""


@pytest.mark.parametrize("flag", ["--skip-worktree", "--assume-unchanged"])
def test_a_file_that_its_owner_set_aside_is_no_hindrance_until_it_would_be_overwritten(
    repo: Path, tree: Worktree, flag: str
) -> None:
    """Git calls such a checkout clean, so there is nothing that its owner could commit or stash."""
    git(repo, "update-index", flag, "b.txt")
    (repo / "b.txt").write_text("my own settings\n")
    work(tree, "new.txt", "agent\n")
    move(tree, *made(tree))
    assert ((repo / "new.txt").read_text(), (repo / "b.txt").read_text()) == ("agent\n", "my own settings\n")
    work(tree, "b.txt", "agent\n")
    place, found = made(tree)
    before = state(repo)
    with pytest.raises(CannotMove, match=r"b\.txt in .* git was told not to look at"):
        move(tree, place, found)
    assert state(repo) == before


def test_a_merge_that_died_never_takes_what_its_owner_set_aside(repo: Path, tree: Worktree) -> None:
    git(repo, "update-index", "--assume-unchanged", "b.txt")
    (repo / "b.txt").write_text("my own settings\n")
    work(tree, "new.txt", "agent\n")
    place, found = made(tree)
    git(repo, "update-ref", "refs/heads/main", found.commit)
    with pytest.raises(checkout.NotFollowed):
        checkout.finish(place, place.onto, found.commit, "m1", tree.private.parent)
    assert (repo / "b.txt").read_text() == "my own settings\n"


def test_commits_are_made_anew_whatever_their_date(repo: Path, tree: Worktree) -> None:
    made_once = work(tree, "new.txt", "agent\n")
    commit(repo, "b.txt", "mine\n")
    old = git(repo, "cat-file", "commit", made_once)
    author = next(line for line in old.split("\n") if line.startswith("author "))
    ancient = old.replace(author, "author Long Ago <long@ago> 0 +0200") + "\n"
    raw = repo.parent / "commit"
    raw.write_text(ancient)
    (tree.private / "HEAD").write_text(git(repo, "hash-object", "-t", "commit", "-w", str(raw)) + "\n")
    move(tree, *made(tree, "rebase"))
    assert git(repo, "log", "-1", "--format=%an %ad", "--date=raw") == "Long Ago 0 +0200"


def test_a_shallow_clone_is_merged_like_any_other(tmp_path: Path, repo: Path) -> None:
    commit(repo, "b.txt", "second\n")
    shallow = tmp_path / "shallow"
    git(tmp_path, "clone", "-q", "--depth", "1", f"file://{repo}", str(shallow))
    for name in ("merge", "squash", "rebase"):
        tree = session(tmp_path, shallow, name)
        work(tree, f"{name}.txt", "agent\n")
        commit(shallow, "b.txt", f"before {name}\n")
        place, found = made(tree, name)
        assert found.how == {"merge": m.MERGE, "squash": m.SQUASH, "rebase": m.REBASE}[name]
        move(tree, place, found)
        assert (shallow / f"{name}.txt").read_text() == "agent\n"
    assert git(shallow, "status", "--porcelain") == ""


@pytest.mark.parametrize("index", ["--no-sparse-index", "--sparse-index"])
def test_what_a_sparse_checkout_leaves_out_is_not_missing(repo: Path, tree: Worktree, index: str) -> None:
    git(repo, "sparse-checkout", "set", "--cone", index, "new")
    assert not (repo / "tests").exists()
    work(tree, "new/one.txt", "agent\n")
    work(tree, "tests/test_a.py", "agent\n")
    move(tree, *made(tree))
    assert (repo / "new" / "one.txt").read_text() == "agent\n"
    assert not (repo / "tests").exists()
    assert git(repo, "status", "--porcelain") == ""
    assert git(repo, "show", "HEAD:tests/test_a.py") == "agent"
