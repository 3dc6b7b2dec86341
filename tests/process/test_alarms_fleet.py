"""Alarms of a real fleet: raised once and seen everywhere, put off, and over when work goes on; nothing is stopped by
them, and a new supervisor raises none a second time.
"""

from __future__ import annotations

import pytest

from tests.fleetlib import HOLD, Fleet, fleet, kill, play, wait_for

pytestmark = pytest.mark.timeout(300)


def test_a_silent_session_rings_once_is_put_off_and_goes_on() -> None:
    with fleet(config='\n[alarms]\nsilent = "2s"\n') as f:
        f.run("supervisor", "start")
        sid = f.launch(play([HOLD], "Done."))
        f.wait_event(sid, "tool.started")
        wait_for("the alarm of its call, not one of a slow start", lambda: _rang_at_call(f, sid))
        row = wait_for("its row", lambda: next((r for r in f.json("ls") if r["group"] == "errors"), None))
        assert row["state"] in ("starting", "running")
        assert "nothing came of it" in row["detail"]
        assert "nothing came of it" in f.run("approvals").stdout
        assert "nothing came of it" in f.run("logs", sid).stdout
        wrong = f.run("snooze", sid, "--for", "soon", check=False)
        assert (wrong.returncode, "is not a duration such as 90m" in wrong.stderr) == (2, True)
        assert "no reminder of silent" in f.run("snooze", sid, "--for", "1h").stdout
        assert f.json("ls")[0]["group"] == "running"
        assert "nothing came of it" not in f.run("approvals").stdout
        kill(f.supervisor_pid())
        f.run("supervisor", "start")
        f.wait_state(sid, "running")
        f.release(sid)
        f.wait_state(sid, "done")
        rang = [r.type for r in f.records(sid) if r.type in ("alarm.raised", "alarm.cleared")]
        turns = ["alarm.raised", "alarm.cleared"] * len(rang)
        assert rang == turns[: len(rang)], "each is raised once, and once more only when it was over"
        assert f.state(sid).alarms.raised == {}
        refused = f.run("snooze", sid, check=False)
        assert refused.returncode != 0
        assert "has no alarm to put off" in refused.stderr
        assert f.violations() == []


def test_a_failed_session_is_put_off_on_record_and_comes_back() -> None:
    with fleet() as f:
        f.run("supervisor", "start")
        sid = f.launch(play([("shell", {"script": "rm notes.txt"})], "Done."), checks=("test -e notes.txt",))
        f.wait_state(sid, "failed")
        assert "put off" not in f.run("approvals").stdout
        f.run("snooze", sid, "--for", "1h")
        assert "put off until" in f.run("approvals").stdout
        assert f.json("ls")[0]["group"] == "errors", "it stays there"
        f.run("snooze", sid, "--for", "1s")
        wait_for("it is back", lambda: "put off" not in f.run("approvals").stdout)
        assert f.run("approvals").stdout.count("hangs") == 1
        f.run("snooze", sid, "--for", "1h")
        kill(f.supervisor_pid())
        f.run("supervisor", "start")
        assert "put off until" in f.run("approvals").stdout, "it is in its log"
        assert f.violations() == []


def _rang_at_call(f: Fleet, sid: str) -> bool:
    started = next(r.seq for r in f.records(sid) if r.type == "tool.started")
    return any(max(one.evidence, default=-1) >= started for one in f.state(sid).alarms.raised.values())
