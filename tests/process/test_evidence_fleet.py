"""Requests for evidence in a real fleet: as many as configured, also where the agent is killed between two of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.events import types as t
from tests.fleetlib import HOLD, Fleet, fleet, kill, play


@pytest.fixture(scope="module")
def two() -> Iterator[Fleet]:
    with fleet(config="evidence_rounds = 2\n") as made:
        yield made


def requests_for_evidence(f: Fleet, sid: str) -> int:
    return sum(isinstance(r.body, t.UserMessage) and r.body.evidence for r in f.records(sid))


def replies(f: Fleet, sid: str) -> int:
    return sum(isinstance(r.body, t.ModelMessage) for r in f.records(sid))


def test_an_agent_killed_between_two_requests_is_asked_no_more_than_that(two: Fleet) -> None:
    sid = two.launch(play("All is done.", [HOLD], "I looked again: done.", "The file is gone: done."), name="killed")
    two.wait_event(sid, "tool.started")
    assert requests_for_evidence(two, sid) == 1
    kill(two.brain_pid(sid))
    two.release(sid)
    row = two.wait_state(sid, "done")
    assert requests_for_evidence(two, sid) == 2
    assert replies(two, sid) == 4
    assert not row.get("verified")
    assert row["detail"].startswith("no check was given; asked for evidence 2 times")
    shown = two.run("brief", sid).stdout
    assert "asked for evidence 2 times" in shown


@pytest.mark.parametrize("rounds", ["0", "1"])
def test_a_launch_may_ask_otherwise_than_configured(two: Fleet, rounds: str) -> None:
    sid = two.launch(play("Done.", "Done, I looked."), name=f"r{rounds}", more=("--evidence-rounds", rounds))
    two.wait_state(sid, "done")
    assert requests_for_evidence(two, sid) == int(rounds)
    assert replies(two, sid) == 1 + int(rounds)


def test_an_agent_that_has_nothing_more_to_say_still_ends(two: Fleet) -> None:
    sid = two.launch(play("Done."), name="silent", more=("--evidence-rounds", "1"))
    row = two.wait_state(sid, "done", "waiting")
    assert row["state"] == "done"
    assert requests_for_evidence(two, sid) == 1
