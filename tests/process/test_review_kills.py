"""Supervisors killed while planner, evaluator and judge think: no word of theirs is lost, had twice or paid for twice.

The simulator holds the reply, so that each death happens while it is under way and never beside it.
"""

from __future__ import annotations

import json
import os
import signal
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from harness.events import types as t
from harness.events.body import UNSETTLED
from harness.events.plan.contract_events import AGREES, PLANS
from harness.events.plan.evaluation_events import JUDGES
from harness.tools import registry
from tests.fleetlib import Fleet, fleet, kill, make_repository, play, wait_for
from tests.process.test_judge_fleet import bodies, simulate, write
from tests.process.test_supervisor_life import parent, replaced

pytestmark = pytest.mark.timeout(300)
CHECK = "test -s one.txt || exit 1; until [ -e go ]; do sleep 0.02; done; rm go"


@pytest.fixture
def f() -> Iterator[Fleet]:
    with fleet() as made:
        make_repository(made.root / "repo", {"notes.txt": "keep\n"})
        yield made


def under_way(f: Fleet, sid: str, purpose: str) -> None:
    """Wait until a request of that purpose is on record, whose reply the endpoint holds."""
    wait_for(f"a request of the {purpose}", lambda: (r := f.state(sid).request) is not None and r.purpose == purpose)


@contextmanager
def nobody_supervises(f: Fleet) -> Iterator[None]:
    """The supervisor is killed, and none follows before the end of the block."""
    before = f.supervisor_pid()
    guardian = parent(before)
    os.kill(guardian, signal.SIGSTOP)
    try:
        kill(before)
        yield
    finally:
        os.kill(guardian, signal.SIGCONT)
    replaced(f, before)


def answered(f: Fleet, sid: str, purpose: str, count: int) -> None:
    """Wait until so many replies of that purpose are on record."""
    wait_for(f"reply {count} of the {purpose}", lambda: _messages(f, sid)[purpose] >= count)


def _messages(f: Fleet, sid: str) -> Counter[str]:
    return Counter(m.purpose for m in bodies(f, sid, t.ModelMessage))


def before_the_judge(f: Fleet, sid: str, count: int) -> None:
    """From the work's last check on the endpoint holds what it is asked: the judge's case of that cycle."""
    wait_for(f"check {count} to run", lambda: _checks(f, sid) >= count)
    simulate(f, "hold")
    (Path(f.row(sid)["worktree"]) / "go").touch()
    under_way(f, sid, JUDGES)


def _checks(f: Fleet, sid: str) -> int:
    records = f.records(sid)
    proposed = [r.body for r in records if isinstance(r.body, t.ToolProposed)]
    ours = {b.call_id for b in proposed if b.tool == registry.CHECK and not b.before_work}
    return sum(isinstance(r.body, t.ToolStarted) and r.body.call_id in ours for r in records)


def test_no_word_of_planner_evaluator_and_judge_is_lost_twice_or_paid_twice_when_supervisors_die(f: Fleet) -> None:
    """Planner: its reply comes while nobody supervises, and its brain dies too. Evaluator: the same, its brain lives.
    Judge: as the planner, in the second cycle a supervisor follows before the reply, in the third the brain dies with
    it.
    """
    work = [(write("one.txt", f"{n}\n"), f"Done {n}.") for n in range(3)]
    goal = play(*(turn for pair in work for turn in pair))
    marks = "[[planner good]] [[agrees yes]] [[judge needs_revision | needs_revision | satisfied]]"
    simulate(f, "hold")
    sid = f.launch(f"{goal} {marks}", checks=(CHECK,), more=("--review",))
    under_way(f, sid, PLANS)
    with nobody_supervises(f):
        simulate(f, "release")
        answered(f, sid, PLANS, 1)
        kill(f.brain_pid(sid))
        simulate(f, "hold")
    under_way(f, sid, AGREES)
    with nobody_supervises(f):
        simulate(f, "release")
        answered(f, sid, AGREES, 1)

    before_the_judge(f, sid, 1)
    with nobody_supervises(f):
        simulate(f, "release")
        answered(f, sid, JUDGES, 1)
        kill(f.brain_pid(sid))
    before_the_judge(f, sid, 2)
    with nobody_supervises(f):
        pass
    under_way(f, sid, JUDGES)
    simulate(f, "release")
    before_the_judge(f, sid, 3)
    with nobody_supervises(f):
        kill(f.brain_pid(sid))
    f.wait_event(sid, "model.failed")
    simulate(f, "release")
    row = f.wait_state(sid, "done", "failed", "waiting")
    assert (row["state"], row["verified"]) == ("done", True), row["detail"]

    assert [d.n for d in bodies(f, sid, t.ContractDrafted)] == [1]
    assert [(a.drafts, a.objections, a.requests) for a in bodies(f, sid, t.ContractAgreed)] == [(1, [], 2)]
    words = [(e.cycle, e.verdict, e.requests) for e in bodies(f, sid, t.EvaluationEnded)]
    assert words == [(1, "needs_revision", 1), (2, "needs_revision", 1), (3, "satisfied", 1)]
    told = [b.text for b in bodies(f, sid, t.UserMessage) if b.origin == "harness"]
    assert [text.count("Judged in cycle") for text in told if "Judged in cycle" in text] == [1, 1]

    replies = _messages(f, sid)
    assert replies == {PLANS: 1, AGREES: 1, JUDGES: 3, "": 6}
    (cut,) = bodies(f, sid, t.ModelFailed)
    assert (cut.purpose, cut.kind) == (JUDGES, "cut")
    lost = next(r for r in bodies(f, sid, t.ModelRequest) if (r.request_id, r.attempt) == (cut.request_id, cut.attempt))
    billed = [one for one in recent(f) if one.get("usage", {}).get("output_tokens")]
    assert len(billed) == replies.total()
    told = [line for line in f.run("logs", sid).stdout.splitlines() if "at most $" in line and " out · " in line]
    assert len(told) == sum(m.price_source == UNSETTLED for m in bodies(f, sid, t.ModelMessage)) >= 3
    assert row["spent_nano"] == sum(one["nano"] for one in billed) + lost.reserved_nano
    wait_for("every late settlement to be on record", lambda: not f.state(sid).unsettled)
    assert f.state(sid).spent_nano == sum(one["nano"] for one in billed)
    assert f.violations() == []


def recent(f: Fleet) -> list[dict[str, Any]]:
    """What the endpoint was asked for, with what it billed."""
    with urllib.request.urlopen(f"{f.base_url}/_sim/requests") as reply:
        return [one for one in json.load(reply)["requests"] if one["path"].startswith("/v1/messages")]
