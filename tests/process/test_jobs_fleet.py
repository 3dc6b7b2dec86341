"""A job in a whole fleet: the session thinks of nothing meanwhile, whoever is killed, and is told how it ended."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.events import types as t
from tests.fleetlib import Fleet, fleet, kill, play, wait_for

pytestmark = pytest.mark.timeout(300)


def bodies(f: Fleet, sid: str, kind: type[t.Body]) -> list[t.Body]:
    return [r.body for r in f.records(sid) if isinstance(r.body, kind)]


def parked(f: Fleet, sid: str, times: int) -> bool:
    for_a_job = [b for b in bodies(f, sid, t.SessionParked) if isinstance(b, t.SessionParked) and b.why == "job"]
    return len(for_a_job) == times and f.state(sid).lease is None


def until(name: str, then: str) -> str:
    return f"echo begun; while [ ! -e {name} ]; do sleep 0.1; done; {then}"


def test_a_session_waits_for_jobs_without_a_brain_and_goes_on_by_itself() -> None:
    goal = play(
        [("shell", {"script": until("go", "echo epoch 1; exit 7"), "job": True, "limit_s": 7200})],
        [("job", {"action": "wait", "job": "j1"})],
        [("shell", {"script": until("go2", "echo made > made"), "job": True})],
        "Both are on their way; there is nothing left for me to do.",
        "That is all.",
    )
    with fleet() as f:
        sid = f.launch(goal, checks=("test -e made",))
        wait_for("nobody to think for it", lambda: parked(f, sid, 1))
        row = f.row(sid)
        assert (row["state"], row["group"]) == ("running", "running")
        assert row["detail"].startswith("job j1: echo begun; while")
        kill(f.supervisor_pid())
        worktree = Path(row["worktree"])
        (worktree / "go").touch()
        wait_for("the end of the job", lambda: bodies(f, sid, t.JobEnded))
        wait_for("a second wait, for a job that nobody asked about", lambda: parked(f, sid, 2))
        (ended,) = bodies(f, sid, t.JobEnded)
        assert isinstance(ended, t.JobEnded)
        assert (ended.status, ended.exit_code, ended.last) == ("error", 7, "begun\nepoch 1")
        (told,) = [b for b in bodies(f, sid, t.ToolEnded) if isinstance(b, t.ToolEnded) and b.call_id == ended.told]
        assert "exit code 7" in told.preview
        assert not f.state(sid).checks_passed, "nothing is checked while a job may still write"

        (worktree / "go2").touch()
        assert f.wait_state(sid, "done")["verified"]
        messages = [b for b in bodies(f, sid, t.UserMessage) if isinstance(b, t.UserMessage) and b.jobs]
        assert [m.jobs for m in messages] == [["j2"]]
        assert "job j2 ended well" in messages[0].text
        assert f.violations() == []
