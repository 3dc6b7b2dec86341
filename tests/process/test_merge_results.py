"""Results of merges on real repositories: made beside everything, moved in one step, never over anybody's changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from harness.checks.protected_files import Rules
from harness.workspace.git.errors import MovesSubmodule
from harness.workspace.git.merge_rules import refusal
from harness.workspace.merge import checkout, merge
from harness.workspace.merge.checkout import CannotMove, NotFollowed
from harness.workspace.merge.merge import MergeConflict, MergeRequest, MergeResult
from harness.workspace.private_git.private_gitdir import Worktree, publish
from harness.workspace.protected import restore
from harness.workspace.tree import diff
from tests.process.gittraps import ATTRIBUTES, Traps, commit_as_agent, git, session
from tests.process.mergelib import commit, made, move, place_of, repository, state, work

NAMES = ("merge", "squash", "rebase")


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path)


@pytest.fixture
def tree(tmp_path: Path, repo: Path) -> Worktree:
    return session(tmp_path, repo)


@pytest.mark.parametrize("how", NAMES)
def test_a_clean_checkout_follows_its_branch(repo: Path, tree: Worktree, how: str) -> None:
    work(tree, "new.txt", "agent\n")
    commit(repo, "b.txt", "mine\n")
    before = git(repo, "rev-parse", "HEAD")
    place, found = made(tree, how)
    assert git(repo, "rev-parse", "HEAD") == before
    move(tree, place, found)
    assert git(repo, "status", "--porcelain") == ""
    assert ((repo / "new.txt").read_text(), (repo / "b.txt").read_text()) == ("agent\n", "mine\n")
    parents = git(repo, "log", "-1", "--format=%P").split()
    assert parents[0] == before
    assert len(parents) == (2 if how == "merge" else 1)
    assert not (repo / ".git" / "index.lock").exists()


def test_the_whole_goal_stands_wrapped_in_the_commit(repo: Path, tree: Worktree) -> None:
    goal = "Find the test that fails " * 12
    work(tree, "new.txt", "agent\n")
    commit(repo, "b.txt", "mine\n")
    _, found = made(tree, goal=f"{goal}\nmore")
    told = git(repo, "log", "-1", "--format=%B", found.commit)
    subject, _, body = told.partition("\n\n")
    assert subject == f"Merge branch '{tree.branch}'"
    assert " ".join(body.split()) == goal.strip()
    assert max(map(len, body.splitlines())) <= 72
    _, found = made(tree, "squash", goal=goal)
    assert git(repo, "log", "-1", "--format=%s", found.commit) == goal[:71] + "…"


def test_a_branch_that_was_not_moved_goes_forward(repo: Path, tree: Worktree) -> None:
    head = work(tree, "dir/new.txt", "agent\n")
    place, found = made(tree)
    assert (found.how, found.commit) == ("fast-forward", head)
    move(tree, place, found)
    assert git(repo, "rev-parse", "main") == head
    assert git(repo, "status", "--porcelain") == ""


def test_a_branch_that_nobody_shows_moves_alone(repo: Path, tree: Worktree) -> None:
    work(tree, "new.txt", "agent\n")
    git(repo, "branch", "other")
    (repo / "a.txt").write_text("being edited\n")
    before = state(repo)
    move(tree, *made(tree, into="other"))
    assert state(repo) == before
    assert git(repo, "show", "other:new.txt") == "agent"


@pytest.mark.parametrize("name", ["main~0", "main^", "@", "HEAD", "-d", "no\nsuch", "refs/heads/main/x", "../main", ""])
def test_only_the_exact_name_of_a_branch_is_one(repo: Path, tree: Worktree, name: str) -> None:
    work(tree, "new.txt", "agent\n")
    commit(repo, "b.txt", "mine\n")
    git(repo, "switch", "-q", "--detach")
    seen, place = merge.survey(tree, "s1", MergeRequest("merge", repo, name))
    refused = refusal(seen)
    assert place is None
    assert refused is not None
    assert refused.code == ("not_found" if name else "no_branch")


def test_another_name_of_the_shown_branch_moves_its_checkout_too(repo: Path, tree: Worktree) -> None:
    work(tree, "new.txt", "agent\n")
    git(repo, "symbolic-ref", "refs/heads/alias", "refs/heads/main")
    place, found = made(tree, into="alias")
    assert (place.into, place.shown) == ("main", True)
    move(tree, place, found)
    assert git(repo, "status", "--porcelain") == ""


@pytest.mark.parametrize("how", NAMES)
def test_conflicts_are_named_and_nothing_is_touched(repo: Path, tree: Worktree, how: str) -> None:
    strange = "b\x1b[2J \n.txt"
    work(tree, "a.txt", "agent\n")
    work(tree, strange, "agent\n")
    commit(repo, "a.txt", "mine\n")
    commit(repo, strange, "mine\n")
    before = state(repo)
    wish = MergeRequest(how, repo)
    found = merge.make(tree, place_of(tree, wish), git(repo, "rev-parse", tree.branch), wish, "n", "g", Rules())
    assert isinstance(found, MergeConflict)
    assert found.files == (("a.txt",) if how == "rebase" else ("a.txt", strange))
    assert state(repo) == before


def test_a_rebase_keeps_author_words_and_order_and_drops_what_is_there_already(repo: Path, tree: Worktree) -> None:
    work(tree, "one.txt", "1\n")
    work(tree, "a.txt", "same\n")
    work(tree, "two.txt", "2\n")
    commit(repo, "a.txt", "same\n")
    move(tree, *made(tree, "rebase"))
    assert git(repo, "log", "-3", "--format=%s %an").splitlines() == ["agent's x@x", "agent's x@x", "mine: a.txt Me"]
    assert git(repo, "log", "-1", "--name-only", "--format=") == "two.txt"


def test_what_adds_nothing_is_no_merge(repo: Path, tree: Worktree) -> None:
    work(tree, "a.txt", "same\n")
    commit(repo, "a.txt", "same\n")
    for how in ("squash", "rebase"):
        wish = MergeRequest(how, repo)
        head = git(repo, "rev-parse", tree.branch)
        assert merge.make(tree, place_of(tree, wish), head, wish, "n", "g", Rules()) is None


def test_files_that_decide_are_named(repo: Path, tree: Worktree) -> None:
    work(tree, "tests/test_a.py", "weaker\n")
    assert made(tree)[1].decides == ("tests/test_a.py",)


def test_what_decides_on_the_branch_counts_when_the_agent_brings_it_in(repo: Path, tree: Worktree) -> None:
    (repo / "tests" / "run.sh").write_text("run\n")
    (repo / "tests" / "run.sh").chmod(0o755)
    git(repo, "add", ".")
    onto = commit(repo, "tests/test_a.py", "stricter\n")
    accepts = merge.deciding(tree, onto, Rules())
    assert accepts.keys() == {"tests/run.sh", "tests/test_a.py"}
    (tree.root / "tests" / "test_a.py").write_text("stricter\n")
    assert [one.path for one in restore.examine(tree, Rules(), {}).differences] == ["tests/test_a.py"]
    assert restore.examine(tree, Rules(), accepts).differences == ()
    (tree.root / "tests" / "test_a.py").write_text("weaker\n")
    assert [one.path for one in restore.examine(tree, Rules(), accepts).differences] == ["tests/test_a.py"]


@pytest.mark.parametrize("dirt", ["changed", "staged", "deleted", "mode"])
def test_a_dirty_checkout_is_refused_by_name(repo: Path, tree: Worktree, dirt: str) -> None:
    work(tree, "new.txt", "agent\n")
    if dirt in ("changed", "staged"):
        (repo / "b.txt").write_text("mine\n")
    if dirt == "staged":
        git(repo, "add", "b.txt")
        (repo / "b.txt").write_text("b.txt\n")
    if dirt == "deleted":
        (repo / "b.txt").unlink()
    if dirt == "mode":
        (repo / "b.txt").chmod(0o755)
    before = state(repo)
    seen, _ = merge.survey(tree, "s1", MergeRequest("merge", repo))
    refused = refusal(seen)
    assert refused is not None
    assert (refused.code, seen.dirty) == ("dirty", ("b.txt",))
    assert state(repo) == before


def test_what_changes_while_the_checks_run_stops_the_move(repo: Path, tree: Worktree) -> None:
    work(tree, "new.txt", "agent\n")
    place, found = made(tree)

    def refused(why: str) -> None:
        before = state(repo)
        with pytest.raises(CannotMove, match=why):
            move(tree, place, found)
        assert state(repo) == before

    (repo / "a.txt").write_text("edited\n")
    refused("a.txt in .* was changed meanwhile")
    (repo / "a.txt").write_text("a.txt\n")
    (repo / "new.txt").write_text("mine, in no commit\n")
    refused("new.txt in .* would be overwritten")
    (repo / "new.txt").unlink()
    (repo / ".git" / "index.lock").write_text("")
    refused("another git is at work")
    (repo / ".git" / "index.lock").unlink()
    ref = repo / ".git" / "refs" / "heads" / "main.lock"
    ref.write_text("")
    refused(f"another git is at work in .*if none is: remove {ref}")
    ref.unlink()
    git(repo, "switch", "-qc", "elsewhere")
    refused("switched to another branch")
    git(repo, "switch", "-q", "main")
    commit(repo, "b.txt", "moved on\n")
    refused("changed meanwhile|was moved to")
    move(tree, *made(tree))
    assert (repo / "b.txt").read_text() == "moved on\n"


def test_a_file_that_was_only_touched_is_no_hindrance(repo: Path, tree: Worktree) -> None:
    work(tree, "a.txt", "agent\n")
    os.utime(repo / "a.txt", (1, 1))
    move(tree, *made(tree))
    assert (repo / "a.txt").read_text() == "agent\n"


@pytest.mark.parametrize("written", [(), ("a.txt",), ("a.txt", "dir/new.txt"), ("a.txt", "dir/new.txt", "-b.txt")])
def test_a_move_that_died_after_the_branch_is_finished(repo: Path, tree: Worktree, written: tuple[str, ...]) -> None:
    """The branch says that it happened; whichever files were written, the checkout becomes what the branch is."""
    (tree.root / "b.txt").unlink()
    (tree.root / "a.txt").write_text("agent\n")
    (tree.root / "dir").mkdir()
    (tree.root / "dir" / "new.txt").write_text("agent\n")
    merge.commit_all(tree, "work")
    place, found = made(tree)
    old = place.onto
    git(repo, "update-ref", "refs/heads/main", found.commit)
    (repo / ".git" / "index.lock").write_text("watchfloor merge m1")
    for name in written:
        if name.startswith("-"):
            (repo / name[1:]).unlink()
        else:
            (repo / name).parent.mkdir(exist_ok=True)
            (repo / name).write_text("agent\n")
    checkout.finish(place, old, found.commit, "m1", tree.private.parent)
    assert git(repo, "status", "--porcelain") == ""
    assert not (repo / "b.txt").exists()
    checkout.finish(place, old, found.commit, "m1", tree.private.parent)


@pytest.mark.parametrize("name", ["a.txt", "tests/test_a.py", "new.txt"])
def test_finishing_never_overwrites_what_its_owner_wrote(repo: Path, tree: Worktree, name: str) -> None:
    work(tree, "a.txt", "agent\n")
    work(tree, "new.txt", "agent\n")
    place, found = made(tree)
    git(repo, "update-ref", "refs/heads/main", found.commit)
    (repo / name).write_text("written since\n")
    with pytest.raises(NotFollowed, match=name):
        checkout.finish(place, place.onto, found.commit, "m1", tree.private.parent)
    assert (repo / name).read_text() == "written since\n"
    assert not (repo / ".git" / "index.lock").exists()


def test_the_lock_of_another_git_is_left(repo: Path, tree: Worktree) -> None:
    (repo / ".git" / "index.lock").write_text("DIRC")
    checkout.unlock(repo / ".git", "m1")
    assert (repo / ".git" / "index.lock").exists()


def test_no_trap_is_sprung(tmp_path: Path, repo: Path, tree: Worktree) -> None:
    """Hooks, filters, drivers and watchers of the repository, called for by attributes that the agent commits."""
    traps = Traps(tmp_path / "traps")
    work(tree, ".gitattributes", ATTRIBUTES)
    work(tree, "a.txt", "one\nagent\n")
    git(repo, "config", "core.editor", "true")
    commit(repo, "b.txt", "mine\n")
    traps.configure(repo / ".git" / "config", "user")
    traps.hooks(repo / ".git" / "hooks", "user")
    for how in NAMES:
        wish = MergeRequest(how, repo)
        place = place_of(tree, wish)
        head = git(repo, "rev-parse", tree.branch)
        assert isinstance(merge.make(tree, place, head, wish, "n", "g", Rules()), MergeResult)
    place, found = made(tree)
    merge.lay_out(tree, found.commit, tmp_path / "result")
    assert (tmp_path / "result" / "a.txt").read_text() == "one\nagent\n"
    move(tree, place, found)
    assert traps.sprung() == []
    assert (repo / "a.txt").read_text() == "one\nagent\n"
    seen, _ = merge.survey(tree, "s1", MergeRequest("merge", repo))
    assert traps.sprung() == []
    assert not seen.commits


@pytest.mark.parametrize("where", ["repository", "home", "xdg"])
def test_a_filter_that_the_person_uses_is_left_to_the_person(
    tmp_path: Path, repo: Path, tree: Worktree, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "xdg"))
    monkeypatch.delenv("GIT_CONFIG_GLOBAL", raising=False)
    file = {
        "repository": repo / ".git" / "config",
        "home": tmp_path / ".gitconfig",
        "xdg": tmp_path / "xdg" / "git" / "config",
    }[where]
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("a") as config:
        config.write('[filter "lfs"]\n\tclean = git-lfs clean -- %f\n\trequired = true\n')
    commit(repo, ".gitattributes", "*.bin filter=lfs\n")
    work(tree, "x.bin", "pointer\n")
    place, found = made(tree)
    before = state(repo)
    with pytest.raises(CannotMove, match=r"x.bin goes through the filter lfs.*git -C"):
        move(tree, place, found)
    assert state(repo) == before


def test_a_filter_that_nobody_configured_holds_nothing_up(repo: Path, tree: Worktree) -> None:
    work(tree, ".gitattributes", "* filter=made-up\n")
    work(tree, "x.bin", "as it is\n")
    place, found = made(tree)
    move(tree, place, found)
    assert (repo / "x.bin").read_text() == "as it is\n"


@pytest.mark.parametrize("how", NAMES)
def test_a_submodule_at_another_commit_is_left_to_the_person(repo: Path, tree: Worktree, how: str) -> None:
    commit_as_agent(tree, f"160000,{'5' * 40},lib")
    publish(tree)
    assert f"+Subproject commit {'5' * 40}" in diff.diff(tree).patch
    commit(repo, "b.txt", "mine\n")
    before = state(repo)
    with pytest.raises(MovesSubmodule, match="lib is a submodule"):
        made(tree, how)
    assert state(repo) == before


def test_a_submodule_that_is_removed_is_said_so(tmp_path: Path, repo: Path) -> None:
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{'5' * 40},lib")
    git(repo, "commit", "-qm", "with lib")
    tree = session(tmp_path, repo)
    git(tree.root, "rm", "-q", "--cached", "lib")
    git(tree.root, "commit", "-qm", "without lib")
    publish(tree)
    with pytest.raises(MovesSubmodule, match="lib is a submodule that it removes, and the files of submodules are"):
        made(tree)


def test_a_submodule_that_the_work_leaves_alone_is_no_hindrance(tmp_path: Path, repo: Path) -> None:
    lib = tmp_path / "lib"
    lib.mkdir()
    git(lib, "init", "-q", "-b", "main")
    commit(lib, "x.txt", "x\n")
    git(repo, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(lib), "lib")
    git(repo, "commit", "-qm", "with lib")
    tree = session(tmp_path, repo)
    work(tree, "new.txt", "agent\n")
    commit(repo, "b.txt", "mine\n")
    place, found = made(tree)
    move(tree, place, found)
    assert git(repo, "status", "--porcelain") == ""
    assert ((repo / "lib" / "x.txt").read_text(), (repo / "new.txt").read_text()) == ("x\n", "agent\n")


def test_what_is_in_no_commit_can_be_committed_first(repo: Path, tree: Worktree) -> None:
    (tree.root / "a.txt").write_text("changed\n")
    (tree.root / "b.txt").unlink()
    (tree.root / "new\nname").write_text("new\n")
    seen, _ = merge.survey(tree, "s1", MergeRequest("merge", repo))
    refused = refusal(seen)
    assert refused is not None
    assert (refused.code, seen.uncommitted) == ("uncommitted", ("a.txt", "b.txt", "new\nname"))
    head = merge.commit_all(tree, "the goal\nand more")
    assert git(repo, "log", "-1", "--format=%an %s", tree.branch) == "Me the goal"
    assert (tree.private / "HEAD").read_text().strip() == head
    assert merge.commit_all(tree, "again") == head
    move(tree, *made(tree))
    assert (repo / "new\nname").read_text() == "new\n"
    assert not (repo / "b.txt").exists()
