"""Real fleets whose endpoint refuses what was said or how much, replies with nothing, or bills what cannot be: each has
a way on that a person can press, and most go on by themselves.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from harness.events import types as t
from tests.fleetlib import Fleet, fleet, play

SIGNATURE = "messages.1.content.0: Invalid `signature` in `thinking` block"
HISTORY = {"kind": "status", "status": 400, "message": SIGNATURE, "replies": 1}
STEPS = [[("write_file", {"path": f"n{i}.txt", "content": "new"})] for i in range(3)]
GOAL = play(*STEPS, "Done.")


@pytest.fixture
def f() -> Iterator[Fleet]:
    with fleet() as made:
        made.run("ls")
        yield made


def fault(f: Fleet, **what: Any) -> None:
    request = urllib.request.Request(f"{f.base_url}/_sim/faults", data=json.dumps(what).encode())
    urllib.request.urlopen(request).close()


def mended(f: Fleet) -> None:
    urllib.request.urlopen(urllib.request.Request(f"{f.base_url}/_sim/faults", method="DELETE")).close()


def failed(f: Fleet, sid: str) -> list[t.ModelFailed]:
    return [r.body for r in f.records(sid) if isinstance(r.body, t.ModelFailed)]


def resets(f: Fleet, sid: str) -> list[t.ContextReset]:
    return [r.body for r in f.records(sid) if isinstance(r.body, t.ContextReset)]


@pytest.mark.parametrize(
    "answer",
    [{"body": "<html>413 Request Entity Too Large</html>"}, {"message": "Request exceeds the maximum size"}],
    ids=["page", "api"],
)
def test_a_request_with_too_many_bytes_is_made_shorter_and_all_goes_on(f: Fleet, answer: dict[str, str]) -> None:
    goal = play(*[[("shell", {"script": f"seq {n} {n + 1400}"})] for n in range(8)], "Done.")
    fault(f, kind="status", status=413, over=45_000, times=1000, **answer)
    sid = f.launch(goal)
    f.wait_state(sid, "done", timeout=90)
    refused = failed(f, sid)
    assert refused
    assert {body.kind for body in refused} == {"too_big"}
    assert all(body.bytes > 45_000 for body in refused)
    assert len(refused) <= 2, "what it has learned is not sent again"
    assert f.requests() == []
    second = f.launch(goal, name="second")
    f.wait_state(second, "done", timeout=90)
    assert not failed(f, second), "the next session knows"
    assert f.violations() == []


def test_a_refused_history_is_left_behind_by_itself(f: Fleet) -> None:
    fault(f, **HISTORY, times=1)
    sid = f.launch(GOAL, checks=("test -e n0.txt && test -e n1.txt && test -e n2.txt",))
    f.wait_state(sid, "done", timeout=90)
    assert len(failed(f, sid)) == 1
    assert [body.refused for body in resets(f, sid)] == [True]
    assert f.requests() == []
    assert f.violations() == []


def asked(f: Fleet) -> tuple[str, dict[str, Any]]:
    """A session whose endpoint refuses every history, at its question."""
    fault(f, **HISTORY, times=1000)
    sid = f.launch(GOAL)
    return sid, f.approval(sid)


@pytest.mark.parametrize("way", ["approve", "continue", "say", "compact", "resume", "stop and continue"])
def test_each_way_on_from_a_refused_history_gets_on(f: Fleet, way: str) -> None:
    sid, item = asked(f)
    assert (item["kind"], item["options"]) == ("history", ["fresh", "retry", "stop"])
    assert f.row(sid)["command"] == f"watchfloor continue {sid} --fresh"
    assert SIGNATURE in item["title"]
    before = len(failed(f, sid))
    ways: dict[str, list[tuple[str, ...]]] = {
        "approve": [("approve", item["approval_id"], "--choose", "fresh")],
        "continue": [("continue", sid, "--fresh")],
        "say": [("say", sid, "go on")],
        "compact": [("compact", sid)],
        "resume": [("pause", sid), ("resume", sid)],
        "stop and continue": [("stop", sid), ("continue", sid)],
    }
    for command in ways[way]:
        f.run(*command)
        if command[0] == "stop":
            f.wait_state(sid, "stopped")
    f.wait_event_count(sid, "context.reset", 2)
    anew = max(r.seq for r in f.records(sid) if isinstance(r.body, t.ContextReset))
    assert len([r for r in f.records(sid) if isinstance(r.body, t.ModelFailed) and r.seq < anew]) == before, (
        "the refused history was not sent again"
    )
    mended(f)
    f.wait_event_count(sid, "model.message", 3)
    assert f.violations() == []


def test_nothing_said_is_no_claim_and_costs_no_round(f: Fleet) -> None:
    fault(f, kind="empty", times=2, replies=1)
    sid = f.launch(GOAL, checks=("test -e n2.txt",))
    f.wait_state(sid, "done", timeout=90)
    rounds = [r.body for r in f.records(sid) if isinstance(r.body, t.CheckVerdict)]
    assert len({body.command for body in rounds}) == 1
    fault(f, kind="empty", message="hm", times=3, replies=1)
    other = f.launch(GOAL, name="other")
    item = f.approval(other)
    assert "said nothing and called nothing" in item["title"]
    f.approve(item["approval_id"])
    f.wait_state(other, "done", timeout=90)
    assert f.violations() == []


def test_words_to_a_session_that_could_not_go_on_have_it_go_on_and_leave_no_card(f: Fleet) -> None:
    fault(f, kind="empty", message="hm", times=3, replies=1)
    sid = f.launch(GOAL, name="told")
    assert f.approval(sid)["kind"] == "restart"
    f.run("say", sid, "the work is not finished: go on")
    f.wait_state(sid, "done", timeout=90)
    assert f.requests() == []
    (withdrawn,) = [r.body for r in f.records(sid) if isinstance(r.body, t.ApprovalWithdrawn)]
    assert withdrawn.why == "you said something"
    assert f.violations() == []


def test_bills_that_cannot_be_are_asked_about_and_believed(f: Fleet) -> None:
    fault(f, kind="usage", usage={"input_tokens": -4, "output_tokens": 10**12}, times=1000)
    sid = f.launch(play(*STEPS, *STEPS, "Done."))
    item = f.approval(sid)
    assert (item["kind"], item["options"]) == ("bill", ["believe", "retry", "stop"])
    assert "-4" in item["title"]
    f.run("approve", item["approval_id"], "--choose", "believe")
    f.wait_state(sid, "done", timeout=90)
    assert f.requests() == []
    notes = [r.body.text for r in f.records(sid) if isinstance(r.body, t.HarnessNote) and "usage" in r.body.text]
    assert len(notes) == 1
    assert f.base_url in notes[0]
    assert f.violations() == []
