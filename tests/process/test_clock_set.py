"""The clock of the wall is set a week forward and an hour back while supervisor, keepers, a brain and a job run on it:
nobody is let through, cut off, woken or paid for by that.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.events import types as t
from tests.clocks import COMPILER, WallClock, on_a_clock, start_on_a_clock
from tests.fleetlib import Fleet, fleet, kill, play, wait_for
from tests.process.test_jobs_fleet import parked, until
from tests.process.test_judge_fleet import bodies, write
from tests.process.test_money_fleet import ask_simulator
from tests.process.test_seven_days import BARE, NET, other
from tests.process.test_supervisor_life import replaced

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(COMPILER is None, reason="no C compiler, and no other way to set the clock of a fleet alone"),
]
HOUR = 3600
WEEK = 7 * 24 * HOUR


def jumps(f: Fleet, sid: str) -> list[int]:
    """By how many seconds the clock was set, as the session's log has it."""
    return [round(b.seconds) for b in bodies(f, sid, t.TimePassed)]


def set_to(f: Fleet, clock: WallClock, seconds: int, sids: list[str]) -> None:
    """Set the clock, and wait until the log of each session says so."""
    before = {sid: len(jumps(f, sid)) for sid in sids}
    clock.set(seconds)
    for sid in sids:
        wait_for("the jump to be on record", lambda sid=sid: len(jumps(f, sid)) > before[sid])


def test_a_clock_that_is_set_lets_nothing_through_and_cuts_nothing_off() -> None:
    job = ("shell", {"script": until("go", "exit 0"), "job": True, "limit_s": 2 * HOUR})
    with fleet() as f:
        clock = start_on_a_clock(f)
        asks = f.launch(play([NET], [BARE], [NET], "Done."), name="asks", more=("--cap-wall", "8h"))
        first = f.approval(asks)
        f.run("grant", first["approval_id"], "--expires", "1d", "--count", "5")
        waiting = wait_for("the next request", lambda: other(f, asks, first))
        works = f.launch(play([job], [("job", {"action": "wait", "job": "j1"})], "Done."), more=("--cap-wall", "8h"))
        wait_for("a session that waits for its job without a brain", lambda: parked(f, works, 1))
        ask_simulator(f, "hold", {})
        thinks = f.launch(play([("exec", {"argv": ["true"]})], "Done."), name="thinks", more=("--cap-wall", "8h"))
        f.wait_event(thinks, "model.request")
        every = [asks, works, thinks]
        pids = [f.supervisor_pid(), f.brain_pid(thinks), *map(f.keeper_pid, every)]
        assert all(map(on_a_clock, pids))

        set_to(f, clock, WEEK, every)
        set_to(f, clock, WEEK - HOUR, every)
        for sid in every:
            assert all(abs(a - b) <= 5 for a, b in zip(jumps(f, sid), (WEEK, -HOUR), strict=True))
        assert [a["approval_id"] for a in f.requests()] == [waiting["approval_id"]], "a week is no answer, and no cap"
        assert (bodies(f, works, t.JobEnded), parked(f, works, 1)) == ([], True)
        (runs,) = f.json("jobs", works)
        assert runs["runs_s"] < HOUR, "it runs as long as its limit says, whatever the clock of the wall"
        assert f.row(thinks)["state"] == "running"
        assert [f.supervisor_pid(), f.brain_pid(thinks), *map(f.keeper_pid, every)] == pids, "nobody was replaced"

        ask_simulator(f, "release", {})
        ask_simulator(f, "faults", [{"kind": "overloaded", "retry_after": 6}])
        f.wait_event(thinks, "model.failed")
        set_to(f, clock, WEEK - 2 * HOUR, [thinks])
        f.wait_state(thinks, "done")
        (Path(f.row(works)["worktree"]) / "go").touch()
        f.wait_state(works, "done")
        assert [(b.status, b.exit_code) for b in bodies(f, works, t.JobEnded)] == [("ok", 0)]
        f.approve(waiting["approval_id"])
        asked = wait_for("the next request", lambda: other(f, asks, waiting))
        assert asked["kind"] == "tool", "its rule was over after a day"
        f.approve(asked["approval_id"])
        f.wait_state(asks, "done")
        assert len(bodies(f, asks, t.ToolStarted)) == 3
        assert f.violations() == []
        f.run("verify")


def test_no_budget_of_a_day_is_had_twice_or_lost_by_a_clock_that_is_set() -> None:
    """A jump gives no other day; who starts after it knows no better, and a clock that is set right again brings no
    day back.
    """
    with fleet(config="[caps]\nday_usd = 0.2\n") as f:
        clock = start_on_a_clock(f)
        first = at_the_cap(f)
        (today,) = days(f)
        for seconds in (WEEK, WEEK - HOUR):
            set_to(f, clock, seconds, [first])
            at_the_cap(f)
            assert list(days(f)) == [today]
        spent = days(f)[today]
        start_anew(f)
        at_the_cap(f)
        assert len(days(f)) == 2
        set_to(f, clock, 0, [first])
        at_the_cap(f)
        start_anew(f)
        at_the_cap(f)
        assert len(days(f)) == 2
        assert days(f)[today] == spent
        assert all(nano <= 200_000_000 for nano in days(f).values())
        assert f.violations() == []


def at_the_cap(f: Fleet) -> str:
    """One session more that works until the day's cap stops it, with all others."""
    work = play(*[write(f"{n}.txt", f"{n}\n") for n in range(200)])
    sid = f.launch(work, more=("--model", "claude-sonnet-5-5"))
    f.wait_state(sid, "waiting")
    for row in f.json("ls"):
        f.wait_state(row["sid"], "waiting")
        assert f.approval(row["sid"])["kind"] == "cap"
    return sid


def start_anew(f: Fleet) -> None:
    before = f.supervisor_pid()
    kill(before)
    replaced(f, before)


def days(f: Fleet) -> dict[str, int]:
    """What each day's window holds, in nano-USD."""
    return {day["day"]: day["nano"] for day in f.json("cost")[0]["days"]}
