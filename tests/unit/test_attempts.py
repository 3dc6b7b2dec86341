"""What counts as an attempt at an entry, and as a call and a claim of the agent's."""

from __future__ import annotations

import itertools

import pytest

from harness.agents import done
from harness.agents.steps import Turned
from harness.domain.calls.chores import COMMIT, SETUP
from harness.events import types as t
from harness.events.plan.evaluation_events import RAN_FOR
from harness.projections.score import Tally, score
from harness.projections.state.plan_state import Work

ENTRIES = [t.PlanEntry(f"E{n}", f"Entry {n}", ["make test"]) for n in range(4)]
PLAN = t.PlanLoaded(path="prd.json", form="userStories", entries=ENTRIES)


def verdict(call: int, command: str = "make test", *, passed: bool = False) -> t.CheckVerdict:
    return t.CheckVerdict(call_id=f"c{call}.0", command=command, passed=passed)


def test_a_shared_criterion_is_one_attempt_for_the_entry_at_hand_alone() -> None:
    work = Work.on(PLAN)
    passes = dict.fromkeys(work.standing, False)
    work.begin("E0")
    for call in range(5):
        work.judged(call, verdict(call), passes, by_task=True)
        work.updated(t.PlanUpdated(entry="E0", state="in_progress"))
    work.ended("E0")
    assert [one.attempts for one in work.standing.values()] == [1, 0, 0, 0]
    work.begin("E0")
    assert work.standing["E0"].attempts == 2


@pytest.mark.parametrize(
    "own",
    [
        t.ToolProposed(call_id="c1.0", tool="chore", ref="", input={"chore": COMMIT, "command": "git commit"}),
        t.ToolProposed(call_id="c1.0", tool="chore", ref="", input={"chore": SETUP, "command": "sh ./init.sh"}),
        t.ToolProposed(call_id="c1.0", tool="check", ref=f"{RAN_FOR}1", input={"command": "cat x"}),
    ],
)
def test_what_the_harness_or_a_judge_runs_is_no_call_of_the_agent(own: t.ToolProposed) -> None:
    tally = Tally()
    mine = t.ToolProposed(call_id="c2.0", tool="exec", ref="toolu_1", input={"argv": ["ls"]})
    bodies = [
        body for b in (own, mine) for body in (b, t.ToolStarted(call_id=b.call_id, action_hash="", effect="contained"))
    ]
    for seq, body in enumerate(bodies):
        tally.take(t.Record(seq, "2026-01-01T00:00:00.000Z", "x", 0, body))
    assert score(tally).calls == 1


def test_a_claim_that_was_true_stays_so_when_another_entry_fails_at_the_end() -> None:
    tally = Tally()
    seqs = itertools.count()

    def put(*bodies: t.Body) -> None:
        for body in bodies:
            tally.take(t.Record(next(seqs), "2026-01-01T00:00:00.000Z", "x", 0, body))

    one = t.PlanEntry("A", "A", ["test a"])
    other = t.PlanEntry("B", "B", ["test b"])
    done = t.ModelMessage(request_id="r1", message_id="m", model="m", stop="done", usage=t.Usage(), cost_nano=0)
    put(t.PlanLoaded(path="p", form="tasks", entries=[one, other]))
    put(t.IterationStarted(n=1, entry="A", attempt=1, digest=""), done, verdict(1, "test b"))
    put(verdict(2, "test a", passed=True), t.IterationEnded(n=1, entry="A", outcome="passed"), verdict(3, "test b"))
    assert (tally.claims, tally.false_claims) == (1, 0)
    put(t.IterationStarted(n=2, entry="B", attempt=1, digest=""), done, verdict(4, "test b"))
    assert (tally.claims, tally.false_claims) == (2, 1)


def test_a_failed_approach_says_what_was_tried_and_not_only_the_last_word() -> None:
    ended = t.ToolEnded(call_id="c1.0", status="error", exit_code=1, preview="no")
    seen = done.Evidence(
        ("make test",),
        {"make test": done.Result(ended, verdict(1))},
        rounds=5,
        max_rounds=5,
        task="A",
        tried=("I cache the sums.", "The cache is stale, so I clear it.", "yes"),
    )
    over = done.settle(done.Claim("yes"), seen)
    assert isinstance(over, Turned)
    assert over.what == "I cache the sums. … The cache is stale, so I clear it. … yes"
