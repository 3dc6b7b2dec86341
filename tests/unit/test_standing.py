"""Merged work that its branch has no more: told from history alone, and shown by its row."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.events.session.session_events import SessionIntent
from harness.events.work.merge_events import MERGED, MergeEnded
from harness.projections.state.merging import MergeState
from harness.protocol.paths import Folders
from harness.supervisor.fleet.fleet import Fleet, Money
from harness.supervisor.fleet.subsystem_state import Indexed, MergedInto
from harness.supervisor.upkeep.merged_watch import MergedWatch
from harness.views.session_views import DONE, REVIEW, SessionRow
from harness.workspace.merge.still_merged import stands, tips
from tests.fleetlib import git, make_repository


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A repository into whose main a branch was merged."""
    made = make_repository(tmp_path / "tally")
    git(made, "switch", "-q", "-c", "work")
    (made / "new.txt").write_text("new\n")
    git(made, "add", "new.txt")
    git(made, "commit", "-q", "-m", "work")
    git(made, "switch", "-q", "main")
    git(made, "merge", "-q", "--no-ff", "-m", "merged", "work")
    return made


def still(repo: Path, commit: str) -> bool:
    return stands(repo, commit, tips(repo)["main"])


def head(repo: Path) -> str:
    return git(repo, "rev-parse", "HEAD").strip()


def test_a_reset_a_revert_and_the_revert_of_that_are_told_apart(repo: Path) -> None:
    merged = head(repo)
    assert still(repo, merged)
    git(repo, "commit", "-q", "--allow-empty", "-m", f"A talk of {merged}")
    assert still(repo, merged)
    git(repo, "revert", "--no-edit", "-m", "1", merged)
    assert not still(repo, merged)
    git(repo, "revert", "--no-edit", "HEAD")
    assert still(repo, merged), "the revert was reverted"
    git(repo, "reset", "-q", "--hard", "HEAD~3")
    assert still(repo, merged)
    git(repo, "reset", "-q", "--hard", "HEAD~1")
    assert not still(repo, merged)
    assert not still(repo, "0" * 40), "a commit that is nowhere is in no branch"


def test_where_nobody_can_tell_it_stands(repo: Path, tmp_path: Path) -> None:
    assert stands(tmp_path / "gone", head(repo), head(repo))
    assert stands(repo, head(repo), "0" * 40)
    assert tips(tmp_path / "gone") == {}


def test_where_it_was_merged_is_what_the_log_says(tmp_path: Path) -> None:
    fleet = Fleet(Folders(tmp_path / "s", tmp_path / "r", tmp_path / "c"), lambda _: Money())
    session = fleet.add("s2")
    assert session.merged is None
    session.begun()
    session.state.intent = SessionIntent(name="n", goal="g", repo="/r", branch="b", worktree="/w", model="m")
    assert session.merged is None
    session.state.merging = MergeState(ended=MergeEnded(merge_id="m1", outcome=MERGED, into="main", commit="ab"))
    assert session.merged == MergedInto("/r", "main", "ab")


async def test_the_row_goes_back_to_review_and_comes_again(repo: Path, tmp_path: Path) -> None:
    fleet = Fleet(Folders(tmp_path / "s", tmp_path / "r", tmp_path / "c"), lambda _: Money())
    merged = head(repo)
    row = SessionRow(
        "s1",
        "cart",
        "done",
        DONE,
        "merged into main; no check",
        "",
        repo=str(repo),
        merged="main",
        merged_commit=merged,
    )
    fleet.add("s1").known_as(Indexed(row, True))
    looked = MergedWatch(fleet, lambda: True)
    told: list[str] = []
    fleet.observe(lambda session: told.append(session.sid))
    await looked.look()
    assert (fleet.row(fleet.sessions["s1"]), told) == (row, [])
    git(repo, "reset", "-q", "--hard", "HEAD~1")
    await looked.look()
    shown = fleet.row(fleet.sessions["s1"])
    assert (shown.group, shown.merged) == (REVIEW, "")
    assert shown.detail == "taken back from main; no check"
    assert told == ["s1"]
    git(repo, "reset", "-q", "--hard", merged)
    await looked.look()
    assert fleet.row(fleet.sessions["s1"]) == row
    git(repo, "branch", "-q", "-m", "main", "trunk")
    await looked.look()
    assert fleet.row(fleet.sessions["s1"]) == row, "of a branch that is gone nobody can tell"
