"""What each check says before the work: run, kept and told apart, and nothing of it is the agent's work; end to end."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.events import types as t
from tests.fleetlib import Fleet, fleet, git, kill, make_repository, play, wait_for

pytestmark = pytest.mark.timeout(300)
WRITE = play([("shell", {"script": "echo done > new.txt"})], "Done.")


@pytest.fixture
def house() -> Iterator[Fleet]:
    with fleet() as made:
        yield made


def launched(house: Fleet, goal: str, *checks: str) -> str:
    files = {"README.md": "hello\n"}
    return house.launch(goal, checks=checks, repo=make_repository(house.root / "r", files))


def before(house: Fleet, sid: str) -> dict[str, bool | None]:
    return {b.command: b.passed for b in of(house, sid, t.CheckedBefore)}


def of(house: Fleet, sid: str, kind: type[Any]) -> list[Any]:
    return [r.body for r in house.records(sid) if isinstance(r.body, kind)]


def test_each_check_runs_before_the_agent_is_asked_anything(house: Fleet) -> None:
    sid = launched(house, WRITE, "test -f new.txt", "test -f README.md", "no-such-program")
    house.wait_event(sid, "model.request")
    records = [type(r.body) for r in house.records(sid)]
    assert before(house, sid) == {"test -f new.txt": False, "test -f README.md": True, "no-such-program": False}
    assert records.index(t.CheckedBefore) < records.index(t.ModelRequest)


def test_a_verdict_says_whether_it_now_passes_or_still_does(house: Fleet) -> None:
    sid = launched(house, WRITE, "test -f new.txt", "test -f README.md")
    house.wait_state(sid, "done")
    assert {v.command: v.outcome for v in of(house, sid, t.CheckVerdict)} == {
        "test -f new.txt": "now_passes",
        "test -f README.md": "still_passes",
    }
    assert house.state(sid).tool_calls == 3, "the agent's, and the checks when it was done"


def test_what_a_check_wrote_before_the_work_is_not_there_afterwards(house: Fleet) -> None:
    """Files, changes of files, and commits."""
    writes = "echo x > left.txt; echo y >> README.md; git commit -qam y; test -f new.txt"
    looks = "ls; cat README.md; git log --oneline; echo > new.txt"
    sid = launched(house, play([("shell", {"script": looks})], "Done."), writes)
    house.wait_state(sid, "done")
    shown = next(b.preview for b in of(house, sid, t.ToolEnded) if "README" in b.preview)
    assert shown.split("\n")[:2] == ["README.md", "hello"]
    assert len(shown.strip().split("\n")) == 3, "one commit"
    assert len(of(house, sid, t.UndoEnded)) == 1
    assert house.state(sid).undone_since is False


def test_whoever_dies_meanwhile_each_check_is_known_before_the_work(house: Fleet) -> None:
    slow = "test -f notes.txt && sleep 2; echo x >> README.md; test -f new.txt"
    sid = launched(house, WRITE, slow, "! grep -q x README.md && test -f new.txt")
    wait_for("a check that runs", lambda: of(house, sid, t.ToolStarted))
    kill(house.keeper_pid(sid))
    kill(house.supervisor_pid())
    house.row_or_start(sid)
    house.wait_event(sid, "model.request")
    assert list(before(house, sid).values()) == [False, False]
    assert git(Path(house.row(sid)["worktree"]), "status", "--porcelain", "README.md") == "", "what the check wrote"
    house.wait_state(sid, "done", "failed")
    assert house.violations() == []


def test_checks_that_only_read_run_side_by_side_and_nothing_overtakes_one_that_writes(house: Fleet) -> None:
    begins = "sleep 0.3; test -f README.md"
    ends = "sleep 0.31; test -f new.txt"
    writes = "echo x > between.txt; test -f between.txt"
    sid = launched(house, WRITE, begins, ends, writes, "test -f between.txt")
    house.wait_event(sid, "model.request")
    assert list(before(house, sid).values()) == [True, False, True, True], of(house, sid, t.CheckedBefore)
    calls = {b.call_id: b.input["command"] for b in of(house, sid, t.ToolProposed) if b.before_work and b.input}
    steps = [
        (calls[b.call_id], isinstance(b, t.ToolEnded))
        for b in (r.body for r in house.records(sid))
        if isinstance(b, t.ToolStarted | t.ToolEnded) and b.call_id in calls
    ]
    assert {command for command, _ in steps[:2]} == {begins, ends}, "both begin before one ends"
    assert [command for command, _ in steps[4:]] == [writes, writes, "test -f between.txt", "test -f between.txt"]


def test_resuming_one_that_runs_its_checks_first_skips_them_and_what_they_wrote_is_gone(house: Fleet) -> None:
    slow = "echo left > left.txt; test -f new.txt || while :; do sleep 0.05; done"
    looks = play([("shell", {"script": "ls; echo done > new.txt"})], "Done.")
    sid = launched(house, looks, slow, "test -f README.md && echo x >> README.md")
    tree = Path(wait_for("the worktree", lambda: house.row(sid).get("worktree")))
    wait_for("the slow check to run", (tree / "left.txt").exists)
    row = house.row(sid)
    assert (row["state"], row["detail"]) == ("running", f"runs its checks before the work: {slow}")
    assert (row["command"], row["action"]) == (f"watchfloor resume {sid}", "session.resume")
    house.run("resume", sid)
    house.wait_state(sid, "done")
    assert set(before(house, sid).values()) == {None}
    assert [len(b.commands) for b in of(house, sid, t.ChecksSkipped)] == [2]
    listed = next(
        r.body.preview for r in house.records(sid) if isinstance(r.body, t.ToolEnded) and "README" in r.body.preview
    )
    assert "left.txt" not in listed, "what it wrote is no work of the agent's"
    outcomes = {v.command: v.outcome for v in of(house, sid, t.CheckVerdict)}
    assert set(outcomes.values()) == {"passes"}, "nobody knows what they said before"
    assert house.violations() == []


def test_resuming_after_a_pause_skips_nothing(house: Fleet) -> None:
    waits = "while [ -e README.md ]; do sleep 0.05; done"
    sid = launched(house, play("Done."), waits)
    tree = Path(wait_for("the worktree", lambda: house.row(sid).get("worktree")))
    wait_for("the check to run", lambda: house.state(sid).before.running and (tree / "README.md").exists())
    house.run("pause", sid)
    house.run("resume", sid)
    assert of(house, sid, t.ChecksSkipped) == []
    (tree / "README.md").unlink()
    house.wait_event(sid, "model.request")
    assert before(house, sid) == {waits: True}
