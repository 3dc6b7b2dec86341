"""A job in a whole fleet: the session thinks of nothing meanwhile, whoever is killed, and is told how it ended."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path

import pytest

from app.cli.base.exits import NOT_FOUND
from harness.events import types as t
from harness.protocol.client import Client
from harness.protocol.connection.transport import UnixSocket
from tests.fleetlib import Fleet, alive, fleet, git, kill, make_repository, play, wait_for

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
        [("shell", {"script": f"trap 'echo made > made; exit 0' TERM; {until('go2', 'exit 1')}", "job": True})],
        "Both are on their way; there is nothing left for me to do.",
        "That is all.",
    )
    with fleet() as f:
        sid = f.launch(goal, checks=("test -e made",))
        wait_for("nobody to think for it", lambda: parked(f, sid, 1))
        row = f.row(sid)
        assert (row["state"], row["group"]) == ("running", "running")
        assert row["detail"].startswith("job j1: echo begun; while")
        (shown,) = f.json("jobs", sid)
        assert (shown["job"], shown["limit_s"], shown["last"]) == ("j1", 7200, "begun")
        assert f.run("jobs", "log", sid, "j1").stdout == "begun\n"
        assert "begun" in f.run("jobs").stdout
        with Client(UnixSocket(f.folders.supervisor_socket), name="looking") as looking:
            looking.call("subscribe")
            wait_for("its newest line on the row", lambda: f.row(sid)["detail"].endswith(" · begun"))
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

        assert f.run("jobs", "log", sid, "j1").stdout.startswith("begun\nepoch 1\n[job j1 failed, exit code 7")
        never = f.run("jobs", "log", sid, "j9", check=False)
        assert "has no job j9; its jobs were: j1" in never.stderr
        assert f.run("jobs", "cancel", sid, "j9", check=False).returncode == NOT_FOUND
        wait_for("the second to be ready for its end", lambda: f.run("jobs", "log", sid, "j2").stdout == "begun\n")
        f.run("jobs", "cancel", sid, "j2")
        assert f.wait_state(sid, "done")["verified"]
        messages = [b for b in bodies(f, sid, t.UserMessage) if isinstance(b, t.UserMessage) and b.jobs]
        assert [m.jobs for m in messages] == [["j2"]]
        assert "job j2 was cancelled, exit code 0" in messages[0].text
        assert f.violations() == []


def test_a_fleet_that_is_told_to_end_puts_all_on_record_within_the_grace_and_goes_on_where_it_was() -> None:
    """What a scheduler does before its time is over, and a machine before it goes down: SIGTERM to every process."""
    script = f"trap 'echo saved >> saved; exit 0' TERM; echo set > trap; {until('go', 'exit 1')}"
    goal = play(
        [("shell", {"script": script, "job": True})],
        [("exec", {"argv": ["sh", "-c", "echo ran >> ran; while [ -e README.md ]; do sleep 0.1; done"]})],
        [("exec", {"argv": ["sh", "-c", "echo ran >> ran"]})],
        "That is all.",
    )
    with fleet() as f:
        sid = f.launch(goal, checks=("test -e saved",), repo=make_repository(f.root / "repo", {"README.md": "x"}))
        wait_for("a call at work beside the job", lambda: len(bodies(f, sid, t.ToolStarted)) == 2)
        worktree = Path(f.row(sid)["worktree"])
        wait_for("the call's first effect", (worktree / "ran").exists)
        wait_for("the job to be ready for its end", (worktree / "trap").exists)
        keeper = f.keeper_pid(sid)
        for pid in [*(pid for pid, _ in f.processes()), keeper]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        wait_for("everything to be gone, within the grace", lambda: not alive(keeper))
        wait_for("the others to be gone", lambda: not f.processes())
        (ended,) = bodies(f, sid, t.JobEnded)
        assert isinstance(ended, t.JobEnded)
        assert (ended.status, ended.exit_code) == ("cancelled", 0) or ended.status == "ok"
        assert (worktree / "saved").read_text() == "saved\n"
        assert [b.status for b in bodies(f, sid, t.ToolEnded) if isinstance(b, t.ToolEnded)][-1] == "cancelled"
        kept = f.folders.session(sid).checkpoints
        made = [b for b in bodies(f, sid, t.CheckpointCreated) if isinstance(b, t.CheckpointCreated)]
        assert [b.label for b in made] == ["as Watchfloor was stopped"], "what it left is kept within the grace"
        assert git(kept, "show", f"{made[0].commit}:ran") == "ran\n"
        assert git(kept, "show", f"{made[0].commit}:saved") == "saved\n"
        assert len(bodies(f, sid, t.KeeperStarted)) == 1
        f.run("resume", sid)
        assert f.wait_state(sid, "done", timeout=90)["verified"]
        assert (worktree / "ran").read_text() == "ran\nran\n"
        assert [b.jobs for b in bodies(f, sid, t.UserMessage) if isinstance(b, t.UserMessage) and b.jobs] == [["j1"]]
        assert len(bodies(f, sid, t.JobStarted)) == 1
        assert f.violations() == []


def test_nobody_takes_the_place_of_a_keeper_that_ended_while_everything_is_told_to_end() -> None:
    """Told to end one after the other, a keeper is gone before the supervisor hears of it too."""
    busy = play([("exec", {"argv": ["sh", "-c", "echo x > new; while [ -e notes.txt ]; do sleep 0.1; done"]})], "Done.")
    with fleet() as f:
        asks = [f.launch(play("Which of the two shall I take?")) for _ in range(3)]
        works = f.launch(busy)
        for sid in asks:
            f.wait_state(sid, "waiting")
        wait_for("a call at work", lambda: bodies(f, works, t.ToolStarted))
        supervisor = f.supervisor_pid()
        keepers = [f.keeper_pid(sid) for sid in asks]
        os.kill(supervisor, signal.SIGSTOP)
        for pid in keepers:
            os.kill(pid, signal.SIGTERM)
        wait_for("the keepers to be gone", lambda: not any(alive(pid) for pid in keepers))
        for pid, _ in f.processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        os.kill(supervisor, signal.SIGCONT)
        wait_for("everything to be gone", lambda: not f.processes(), timeout=30)
        assert [len(bodies(f, sid, t.KeeperStarted)) for sid in asks] == [1, 1, 1]
