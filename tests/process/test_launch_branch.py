"""`launch --branch`: a session begins from what was named, and a name that is none changes nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.supervisor.base.errors import OpError
from harness.supervisor.sessions.begin import launch_request, starting
from harness.views.launch_request import LaunchRequest
from harness.workspace.git.errors import BranchExists
from harness.workspace.tree import worktrees
from tests.fleetlib import fleet, git, make_repository, play


def _two_branches(repo: Path) -> str:
    """The commit of ``topic``, which the checkout does not show."""
    git(repo, "checkout", "-q", "-b", "topic")
    (repo / "topic.txt").write_text("topic\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-qm", "topic")
    git(repo, "checkout", "-q", "main")
    return git(repo, "rev-parse", "topic").strip()


def test_a_name_leads_to_its_commit_and_the_branch_comes_before_the_tag(tmp_path: Path) -> None:
    repo = make_repository(tmp_path / "repo")
    topic = _two_branches(repo)
    main = git(repo, "rev-parse", "main").strip()
    git(repo, "tag", "topic", "main")
    git(repo, "tag", "-a", "-m", "one", "v1", "topic~0^{commit}")
    git(repo, "update-ref", "refs/remotes/origin/far", topic)
    for name, commit in (("topic", topic), ("main", main), (topic[:10], topic), ("origin/far", topic), ("v1", main)):
        assert launch_request.check(LaunchRequest(repo=str(repo), goal="x", start=name)).start == commit
    assert launch_request.check(LaunchRequest(repo=str(repo), goal="x")).start == ""
    with pytest.raises(OpError) as refused:
        launch_request.check(LaunchRequest(repo=str(repo), goal="x", start="far"))
    assert (refused.value.code, refused.value.hint) == (
        "bad_start",
        "only the remote has it here: --branch origin/far",
    )


def test_all_that_is_offered_can_be_begun_from_and_sessions_branches_come_last(tmp_path: Path) -> None:
    repo = make_repository(tmp_path / "repo")
    topic = _two_branches(repo)
    git(repo, "tag", "v1", "main")
    git(repo, "tag", "topic", "main")
    git(repo, "update-ref", "refs/heads/watchfloor/fix-1", topic)
    git(repo, "update-ref", "refs/remotes/origin/far", topic)
    git(repo, "symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/far")
    git(repo, "pack-refs", "--all")
    offered = starting.starts(repo)
    assert sorted(offered[:-1]) == ["main", "origin/far", "topic", "v1"]
    assert offered[-1] == "watchfloor/fix-1"
    for name in offered:
        assert starting.starting_at(repo, name)


def test_a_plan_that_is_in_no_commit_is_told_in_words(tmp_path: Path) -> None:
    repo = make_repository(tmp_path / "repo")
    with pytest.raises(OpError) as refused:
        launch_request.check(LaunchRequest(repo=str(repo), goal="x", plan="prd.json"))
    assert refused.value.message == f"there is no plan prd.json in commit {git(repo, 'rev-parse', 'main')[:12]}"
    (repo / "prd.json").write_text("{}")
    with pytest.raises(OpError) as refused:
        launch_request.check(LaunchRequest(repo=str(repo), goal="x", plan="prd.json"))
    assert refused.value.hint == f"it lies in {repo}, and a session begins from a commit: commit it first"
    git(repo, "add", "prd.json")
    git(repo, "commit", "-q", "-m", "no plan")
    with pytest.raises(OpError) as refused:
        launch_request.check(LaunchRequest(repo=str(repo), goal="x", plan="prd.json"))
    assert "is no plan: it holds no list of entries" in refused.value.message
    assert refused.value.hint.endswith("watchfloor spec check prd.json")
    assert "commit it first" not in refused.value.hint


@pytest.mark.parametrize(
    ("asked", "option"),
    [({"fresh": "never"}, "--fresh"), ({"fresh": "per-task"}, "--fresh"), ({"accept_plan": True}, "--yes-plan")],
)
def test_what_is_said_of_a_plan_that_is_not_there_is_refused(tmp_path: Path, asked: Any, option: str) -> None:
    repo = make_repository(tmp_path / "repo")
    with pytest.raises(OpError) as refused:
        launch_request.check(LaunchRequest(repo=str(repo), goal="x", checks=["true"], **asked))
    assert refused.value.code == "bad_plan"
    assert f"leave {option} out" in refused.value.hint
    assert launch_request.check(LaunchRequest(repo=str(repo), goal="x", plan_from_goal="plan.json", **asked))


@pytest.mark.parametrize("where", ["../other.json", "{repo}/prd.json"])
def test_a_plan_is_named_by_its_path_from_the_top(tmp_path: Path, where: str) -> None:
    repo = make_repository(tmp_path / "repo", {"prd.json": "[]"})
    (tmp_path / "other.json").write_text("[]")
    with pytest.raises(OpError) as refused:
        launch_request.check(LaunchRequest(repo=str(repo), goal="x", plan=where.format(repo=repo)))
    assert refused.value.hint == "name a file of the repository by its path from the top"


@pytest.mark.parametrize(
    "name",
    ["nobody", "-q", "--all", "main..topic", "HEAD:README.md", "main^{tree}", " main", "a\0b", "\x1b[2J", "x" * 300],
)
def test_a_name_that_is_none_is_named(tmp_path: Path, name: str) -> None:
    repo = make_repository(tmp_path / "repo")
    _two_branches(repo)
    with pytest.raises(OpError) as refused:
        launch_request.check(LaunchRequest(repo=str(repo), goal="x", start=name))
    assert refused.value.code == "bad_start"
    assert "\x1b" not in refused.value.message
    assert "\0" not in refused.value.message


@pytest.mark.sandbox
def test_the_worktree_holds_what_was_named() -> None:
    with fleet() as f:
        repo = f.repository()
        topic = _two_branches(repo)
        (repo / "notes.txt").write_text("changed and not committed\n")
        wrong = f.run("launch", "--repo", str(repo), "--goal", "x", "--branch", "nobody", check=False)
        assert (wrong.returncode, "'nobody' is no branch" in wrong.stderr) == (5, True)
        empty = f.run("launch", "--repo", str(repo), "--goal", "x", "--branch", "", check=False)
        assert (empty.returncode, "--branch: is empty" in empty.stderr) == (2, True)
        assert f.json("ls") == []
        told = f.json("launch", "--repo", str(repo), "--goal", play("Done."), "--branch", "topic", "--no-criterion")
        sid = str(told[0]["sid"])
        f.wait_state(sid, "done")
        worktree = f.folders.worktrees / sid
        assert (worktree / "topic.txt").read_text() == "topic\n"
        assert git(repo, "rev-parse", f.row(sid)["branch"]).strip() == topic
        assert "notes.txt" not in f.run("diff", sid).stdout


def _made(repo: Path, sid: str = "s1") -> str:
    """The branch of a session of this repository, as a launch names it and as its worktree has it."""
    checked = launch_request.check(LaunchRequest(repo=str(repo), goal="x"))
    branch = f"{checked.prefix}x-{sid}"
    state = repo.parent / "state"
    tree = worktrees.create(repo, state / "worktrees" / sid, branch, state / sid / "private")
    assert git(repo, "rev-parse", branch).strip() == tree.base
    return branch


@pytest.mark.parametrize("packed", [False, True])
def test_a_branch_called_watchfloor_gives_sessions_another_prefix_and_is_named(tmp_path: Path, packed: bool) -> None:
    repo = make_repository(tmp_path / "repo")
    git(repo, "branch", "watchfloor")
    if packed:
        git(repo, "pack-refs", "--all")
    assert _made(repo) == "watchfloor-sessions/x-s1"
    (note,) = launch_request.check(LaunchRequest(repo=str(repo), goal="x")).notes
    assert note == "branch watchfloor leaves no room for watchfloor/…, so its branch begins with watchfloor-sessions/"
    git(repo, "branch", "-m", "watchfloor", "theirs")
    assert _made(repo, "s2") == "watchfloor/x-s2"
    assert not launch_request.check(LaunchRequest(repo=str(repo), goal="x")).notes


def test_what_only_looks_alike_is_in_nobodys_way(tmp_path: Path) -> None:
    repo = make_repository(tmp_path / "repo")
    for name in ("watchfloor-x", "Watchfloor", "my/watchfloor", "watchfloor/theirs"):
        git(repo, "branch", name)
    git(repo, "tag", "watchfloor")
    git(repo, "update-ref", "refs/remotes/origin/watchfloor", "main")
    assert _made(repo) == "watchfloor/x-s1"


def test_where_case_is_not_told_apart_another_case_is_in_the_way(tmp_path: Path) -> None:
    repo = make_repository(tmp_path / "repo")
    git(repo, "branch", "WatchFloor")
    git(repo, "config", "core.ignorecase", "true")
    assert launch_request.check(LaunchRequest(repo=str(repo), goal="x")).prefix == "watchfloor-sessions/"


def test_a_broken_ref_of_that_name_is_in_the_way_too(tmp_path: Path) -> None:
    repo = make_repository(tmp_path / "repo")
    (repo / ".git/refs/heads/watchfloor").touch()
    assert _made(repo) == "watchfloor-sessions/x-s1"


def test_without_any_free_prefix_a_launch_is_refused_with_what_to_do(tmp_path: Path) -> None:
    repo = make_repository(tmp_path / "repo")
    git(repo, "branch", "watchfloor")
    git(repo, "branch", "watchfloor-sessions")
    with pytest.raises(OpError) as refused:
        launch_request.check(LaunchRequest(repo=str(repo), goal="x"))
    assert refused.value.code == "branch_exists"
    assert refused.value.message.endswith("rename one: git branch -m watchfloor NEW")


@pytest.mark.parametrize("there", ["watchfloor", "watchfloor/x-s1", "watchfloor/x-s1/more"])
def test_a_worktree_names_the_branch_that_is_in_its_way(tmp_path: Path, there: str) -> None:
    repo = make_repository(tmp_path / "repo")
    git(repo, "branch", there)
    with pytest.raises(BranchExists, match=f"branch {there}|branch watchfloor/x-s1 exists already"):
        worktrees.create(repo, tmp_path / "w" / "s1", "watchfloor/x-s1", tmp_path / "s1" / "private")
    assert not (tmp_path / "w" / "s1").exists()


@pytest.mark.sandbox
def test_a_launch_says_what_its_branch_is_called_instead() -> None:
    with fleet() as f:
        repo = f.repository()
        git(repo, "branch", "watchfloor")
        (made,) = f.json("launch", "--repo", str(repo), "--goal", play("Done."), "--no-criterion")
        assert [one for one in made["warnings"] if one.endswith("so its branch begins with watchfloor-sessions/")]
        f.wait_state(made["sid"], "done")
        branch = f.row(made["sid"])["branch"]
        assert branch.startswith("watchfloor-sessions/")
        assert git(repo, "branch", "--list", branch)
        assert "leaves no room" in f.run("logs", made["sid"]).stdout
