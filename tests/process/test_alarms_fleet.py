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
        assert row["detail"].startswith("nothing came of it")
        assert row["detail"].endswith("; at: sh -c 'while [ -e notes.txt ]; do sleep 0.02; done'"), row["detail"]
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


def test_money_and_a_stuck_check_ring_with_the_records_they_rest_on_and_stand_in_the_briefing() -> None:
    settings = '\n[alarms]\nno_progress_usd = "0.003"\nminute_usd = "0.0005"\nsame_failure = 3\n'
    with fleet(config=settings) as f:
        f.run("supervisor", "start")
        long = "word " * 2000
        paid = f.launch(play([("list_files", {})], long, long, long, [HOLD], "Done."), name="paid", checks=("false",))
        stuck = f.launch(play("One.", "Two.", "Three.", [HOLD], "Done."), name="stuck", checks=("test -e nothere",))
        _rings(f, paid, "no progress", "cost")
        _rings(f, stuck, "stuck check")
        for sid in (paid, stuck):
            for kind, rang in f.state(sid).alarms.raised.items():
                assert rang.value >= rang.limit, kind
                assert rang.evidence, kind
                assert max(rang.evidence) <= f.state(sid).seq
        failed = {r.seq for r in f.records(stuck) if r.type == "check.verdict"}
        assert set(f.state(stuck).alarms.raised["stuck check"].evidence) <= failed
        said = f.run("approvals").stdout
        assert "stuck wants a look: a check failed 3 times in a row in the same way: test -e nothere" in said
        assert "paid wants a look: $0.00" in said
        told = f.run("brief", "--since", "1h").stdout
        assert "2 need you" in told.splitlines()[0]
        assert "alarm: a check failed 3 times in a row in the same way: test -e nothere" in told
        assert told.count("you: see what it does; tell it something, pause it, or put the alarm off") == 2
        f.run("snooze", "paid", "stuck", "--for", "2h")
        assert {row["group"] for row in f.json("ls")} == {"running"}
        assert "you: see what it does" not in f.run("brief", "--since", "1h").stdout
        assert f.violations() == []


def _rings(f: Fleet, sid: str, *kinds: str) -> None:
    wait_for(f"{kinds} of {sid}", lambda: {*kinds} <= f.state(sid).alarms.raised.keys())


def test_a_failed_session_is_put_off_on_record_and_comes_back() -> None:
    with fleet() as f:
        f.run("supervisor", "start")
        sid = f.launch(play([("shell", {"script": "rm notes.txt"})], "Done."), checks=("test -e notes.txt",))
        f.wait_state(sid, "failed")
        assert "put off" not in f.run("approvals").stdout
        (item,) = f.json("approvals")
        assert (item["approval_id"], item["sid"], item["options"]) == (f"held:{sid}", sid, [])
        card = f.run("approvals", f"held:{sid}").stdout
        assert "1 of 1 checks" in card
        assert "watchfloor approve" not in card
        decided = f.run("approve", f"held:{sid}", check=False)
        assert (decided.returncode, f"watchfloor continue {sid}" in decided.stderr) == (5, True), decided.stderr
        f.run("snooze", sid, "--for", "1h")
        assert "put off until" in f.run("approvals").stdout
        assert f.json("ls")[0]["group"] == "errors", "it stays there"
        for _ in range(20):  # also while its keeper is sent home from the time before
            f.run("snooze", sid, "--for", "1h")
        f.run("snooze", sid, "--for", "1s")
        wait_for("it is back", lambda: "put off" not in f.run("approvals").stdout)
        assert f.run("approvals").stdout.count("needs you: 1 of 1 checks") == 1
        f.run("snooze", sid, "--for", "1h")
        kill(f.supervisor_pid())
        f.run("supervisor", "start")
        assert "put off until" in f.run("approvals").stdout, "it is in its log"
        assert f.violations() == []


def _rang_at_call(f: Fleet, sid: str) -> bool:
    started = next(r.seq for r in f.records(sid) if r.type == "tool.started")
    return any(max(one.evidence, default=-1) >= started for one in f.state(sid).alarms.raised.values())
