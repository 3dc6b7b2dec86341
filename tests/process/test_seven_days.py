"""A week goes by while the machine is off: what waits still waits, what had a day, a date or a cap of the day is as it
is after a week, and every session goes on.
"""

from __future__ import annotations

from typing import Any

import pytest

from harness.events import types as t
from tests.days import pass_while_off
from tests.fleetlib import Fleet, fleet, play, wait_for
from tests.process.test_judge_fleet import bodies, write

pytestmark = pytest.mark.timeout(300)
NET = ("exec", {"argv": ["echo", "hello"], "access": "network", "hosts": ["x.test"]})
BARE = ("exec", {"argv": ["true"], "access": "unsandboxed"})
CAPS = "[caps]\nday_usd = 0.2\n"


def test_a_fleet_resumes_after_seven_days() -> None:
    with fleet(config=CAPS) as f:
        repo = str(f.repository())
        f.run("memory", "set", "tone", "short answers", "--user", "--days", "3")
        f.run("memory", "set", "build", "make all", "--repo", repo)
        asks = f.launch(play([NET], [BARE], [NET], "Done."), name="asks", more=("--cap-wall", "8h"))
        first = f.approval(asks)
        f.run("grant", first["approval_id"], "--expires", "1d", "--count", "5")
        waiting = wait_for("the next request", lambda: other(f, asks, first))
        spends = f.launch(
            play(*[write(f"{n}.txt", f"{n}\n") for n in range(200)]),
            name="spends",
            more=("--model", "claude-sonnet-5-5"),
        )
        f.wait_state(spends, "waiting")
        assert f.approval(spends)["kind"] == "cap"
        worked = len(bodies(f, spends, t.ToolStarted))

        pass_while_off(f, 7)
        f.run("supervisor", "start")
        wait_for("a cap of another day", lambda: all(a["sid"] != spends for a in f.requests()))
        assert f.approval(asks)["approval_id"] == waiting["approval_id"], "a week of silence is no answer"
        assert [m["key"] for m in f.json("memory", "ls")[0]["memories"]] == ["build"], "three days are over"
        f.approve(waiting["approval_id"])
        asked = wait_for("the next request", lambda: other(f, asks, waiting))
        assert asked["kind"] == "tool", "the rule ended after a day, and a week without power is no wall time"
        f.approve(asked["approval_id"])
        assert f.wait_state(asks, "done", "waiting", "failed")["state"] == "done"
        wait_for("it to work on with the money of another day", lambda: len(bodies(f, spends, t.ToolStarted)) > worked)
        f.run("stop", spends)
        f.wait_state(spends, "stopped")
        assert len(bodies(f, asks, t.ToolStarted)) == 3
        assert f.violations() == []
        f.run("verify")


def other(f: Fleet, sid: str, than: dict[str, Any]) -> dict[str, Any] | None:
    """An open request of the session that is not the one known."""
    return next((a for a in f.requests() if a["sid"] == sid and a["approval_id"] != than["approval_id"]), None)
