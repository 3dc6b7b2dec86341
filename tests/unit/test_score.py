"""The score of a session: known logs give known numbers, and counting on gives what counting at once does."""

from __future__ import annotations

from copy import deepcopy

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.events import types as t
from harness.projections.score import CHECKS, Phase, Score, Tally, score, tally

DOLLAR = 1_000_000_000
INTENT = t.SessionIntent(
    name="n",
    goal="g",
    repo="/r",
    branch="b",
    worktree="/w",
    model="opus",
    checks=["make test", "one", "two-a", "two-b"],
)
PLAN = t.PlanLoaded(
    path="prd.json",
    form="tasks",
    entries=[
        t.PlanEntry("E1", "", ["one"], phase="parser"),
        t.PlanEntry("E2", "", ["two-a", "two-b"], 1, phase="parser"),
        t.PlanEntry("E3", "", [], 1, phase="docs"),
    ],
)


def said(stop: str = "calls", **usage: int) -> t.ModelMessage:
    return t.ModelMessage(
        request_id="r", message_id="m", model="opus", stop=stop, usage=t.Usage(**usage), cost_nano=DOLLAR // 4
    )


def asks(request_id: str = "r") -> t.ModelRequest:
    return t.ModelRequest(
        request_id=request_id,
        attempt=1,
        model="opus",
        reservation="",
        reserved_nano=0,
        est_input=0,
        max_tokens=1,
        upto_seq=0,
    )


def call(number: int, tool: str = "shell", /, *, ref: str = "t", **given: str) -> list[t.Body]:
    call_id = f"c{number}.0"
    return [
        t.ToolProposed(call_id=call_id, tool=tool, ref=ref, input=dict(given)),
        t.ToolStarted(call_id=call_id, action_hash="", effect="contained"),
    ]


def ended(number: int, status: str = "ok", exit_code: int | None = None) -> t.ToolEnded:
    return t.ToolEnded(call_id=f"c{number}.0", status=status, exit_code=exit_code)


def verdict(command: str, passed: bool) -> t.CheckVerdict:
    return t.CheckVerdict(call_id="c9.0", command=command, passed=passed)


def flip(entry: str, passes: bool = True) -> t.PlanFlipped:
    return t.PlanFlipped(entry=entry, passes=passes, why="", calls=[])


def judged(word: str, nano: int = 0) -> t.EvaluationEnded:
    return t.EvaluationEnded(
        cycle=1, cycles=3, model="opus", rubric="r", verdict=word, summary="", requests=1, cost_nano=nano
    )


def request(name: str) -> t.ApprovalRequested:
    return t.ApprovalRequested(approval_id=name, kind="tool", title="", options=["allow"])


def decided(name: str) -> t.ApprovalDecided:
    return t.ApprovalDecided(approval_id=name, decision_id="d", decision="allow")


def log(*bodies: t.Body, step_s: int = 10) -> list[t.Record]:
    """One record every so many seconds."""
    made: list[t.Record] = []
    for seq, body in enumerate(bodies):
        minutes, seconds = divmod(seq * step_s, 60)
        made.append(t.Record(seq, f"2026-11-22T12:{minutes:02d}:{seconds:02d}.000Z", "x", 0, body))
    return made


def figures(*bodies: t.Body) -> Score:
    return score(tally(log(*bodies)))


def test_a_whole_run_in_numbers() -> None:
    made = figures(
        INTENT,
        PLAN,
        asks(),
        said(input=100, cache_read=300, output=50),
        *call(1, script="pytest"),
        ended(1, "ok", 1),
        *call(2, script="pytest", why="again"),
        ended(2, "ok", 1),
        said(input=100, cache_read=300, output=50),
        *call(3, script="pytest", why="now"),
        ended(3, "ok", 0),
        *call(4, "write_file", path="a.py", content="1"),
        ended(4, "error"),
        said("done", input=100, cache_read=300, output=50),
        verdict("one", True),
        verdict("two-a", True),
        verdict("two-b", False),
        verdict("make test", True),
        flip("E1"),
        t.UserMessage(text="no", origin="human"),
        said("done", input=0, cache_read=0, output=50),
        t.SessionEnded(outcome="failed"),
    )
    assert made == Score(
        outcome="failed",
        model="opus",
        seconds=250.0,
        steps=4,
        calls=4,
        replan_rate=0.0,
        failures=3,
        recovered=1,
        recovery_rate=1 / 3,
        criteria=4,
        passed=2,
        tokens=1400,
        nano=DOLLAR,
        tokens_per_criterion=700.0,
        nano_per_criterion=DOLLAR / 2,
        cache_hit=0.75,
        said=1,
        interrupts=1,
        claims=2,
        false_claims=1,
        points=2.333,
        phases=(Phase("parser", 1.333, 2), Phase("docs", 0.0, 1), Phase(CHECKS, 1.0, 1)),
    )


def test_a_failure_is_recovered_by_the_same_thing_alone() -> None:
    write = ("write_file",)
    one = [*call(1, *write, path="a", content="1"), ended(1, "error")]
    made = figures(*one, *call(2, *write, path="b", content="1"), ended(2))
    assert (made.failures, made.recovered) == (1, 0)
    made = figures(*one, *call(2, *write, path="a", content="2"), ended(2))
    assert (made.failures, made.recovered, made.recovery_rate) == (1, 1, 1.0)
    made = figures(*one, *call(2, *write, path="a", content="2"), ended(2, "denied"))
    assert (made.failures, made.recovered) == (1, 0), "a denial is neither"
    made = figures(verdict("x", False), verdict("x", False), verdict("x", True), verdict("x", False))
    assert (made.failures, made.recovered) == (2, 1)
    assert figures().recovery_rate is None


def test_a_check_of_the_harness_is_no_call_of_the_agent() -> None:
    made = figures(*call(1, "check", ref="", command="make test"), ended(1, "ok", 1))
    assert (made.calls, made.failures) == (0, 0)
    assert figures(*call(1, "check", ref="t", command="make test"), ended(1, "ok", 1)).failures == 1


def test_time_is_blocked_only_while_a_person_is_all_that_is_waited_for() -> None:
    assert figures(request("a"), decided("a")).blocked_seconds == 10.0
    both = figures(request("a"), request("b"), decided("a"), t.ApprovalWithdrawn(approval_id="b", why=""))
    assert (both.blocked_seconds, both.asked) == (30.0, 2)
    thinking = figures(request("a"), asks(), said(), decided("a"))
    assert thinking.blocked_seconds == 20.0
    running = figures(request("a"), *call(1), ended(1), decided("a"))
    assert running.blocked_seconds == 30.0
    assert figures(request("a"), t.HarnessNote(level="info", text="")).blocked_seconds == 10.0, "open until now"
    assert figures(decided("a"), t.HarnessNote(level="info", text="")).blocked_seconds == 0.0


@pytest.mark.parametrize(
    "against",
    [
        verdict("one", False),
        t.RatchetViolation(violation_id="v", call_id="c", files=[]),
        t.PlanRestored(call_id="c", did=["E1 was removed"]),
        judged("needs_revision"),
    ],
)
def test_a_claim_is_false_when_something_speaks_against_it(against: t.Body) -> None:
    assert figures(said("done"), against, against).false_claims == 1
    assert figures(said("calls"), against).false_claims == 0
    assert figures(against, said("done"), verdict("one", True)).false_claims == 0
    assert figures(said("done"), said("calls"), against).false_claims == 0
    assert figures(said("done"), against, said("done"), against).false_claims == 2


def test_a_judge_costs_what_it_costs_and_is_no_step_of_the_agent() -> None:
    word = msgspec.structs.replace(said("done", input=3, output=4), purpose="judge", cost_nano=5)
    made = figures(said("done", input=1), asks(), word, judged("satisfied", nano=5))
    assert (made.nano, made.tokens, made.steps) == (DOLLAR // 4 + 5, 8, 1), "each reply once, whoever gave it"
    assert (made.claims, made.false_claims) == (1, 0)
    asked = figures(asks(), word, request("a"), decided("a"))
    assert asked.blocked_seconds == 10.0, "nobody thinks any more"


def test_an_attempt_without_a_reply_costs_what_it_is_known_to_have_cost() -> None:
    cut = t.ModelFailed(request_id="r", attempt=1, kind="max_tokens", message="")
    paid = msgspec.structs.replace(cut, usage=t.Usage(input=6, output=1), cost_nano=9, price_source="list")
    made = figures(said("calls", input=1), asks(), paid, asks(), cut)
    assert (made.nano, made.tokens, made.steps) == (DOLLAR // 4 + 9, 8, 1)


@pytest.mark.parametrize("how", ["changed", "deleted", "replaced", "shadows", "touched"])
def test_each_kind_of_violation_counts_once_and_speaks_against_a_claim(how: str) -> None:
    file = t.RatchetViolation(violation_id="v", call_id="c", files=[t.ViolatedFile("tests/test_a.py", how)])
    plan = t.PlanRestored(call_id="c", did=["E1 was removed"])
    for bodies in ([file], [plan]):
        made = figures(said("done"), *bodies)
        assert (made.violations, made.claims, made.false_claims) == (1, 1, 1), bodies


def test_what_changed_the_course_is_counted() -> None:
    made = figures(
        INTENT,
        PLAN,
        said(),
        t.PlanUpdated(trigger="tool_failure", reason="three times"),
        t.PlanUpdated(entry="E1", state="in_progress"),
        t.ContextCompacted(
            through_seq=1, handoff="", summary=t.BlobRef("a", 1), tokens_before=2, tokens_after=1, trigger="full"
        ),
        t.PlanRestored(call_id="c", did=["it"]),
        t.ContextReset(keep=0, handoff="", tokens=1, after=1, trigger=""),
        t.UndoEnded(undo_id="u", call_id="c"),
        t.UndoEnded(undo_id="u", call_id="c", error="no"),
        t.SessionEnded(outcome="done", verified=True),
        t.SessionContinued(checks=["one"]),
    )
    assert (made.replans, made.replan_rate, made.violations, made.resets, made.undone) == (1, 1.0, 1, 1, 1)
    assert made.compactions == 1
    assert (made.outcome, made.verified) == ("", False)
    assert [phase.name for phase in made.phases] == ["parser", "docs"]


BODIES: list[t.Body] = [
    INTENT,
    PLAN,
    asks(),
    said(input=3, output=1),
    said("done", cache_read=7),
    *call(1, script="a"),
    ended(1, "ok", 1),
    *call(2, script="a"),
    ended(2),
    verdict("one", False),
    verdict("one", True),
    flip("E1"),
    flip("E1", False),
    flip("nobody's"),
    request("a"),
    decided("a"),
    t.ToolInDoubt(call_id="c1.0", why=""),
    t.ToolResolved(call_id="c1.0", resolution="failed"),
    t.RatchetViolation(violation_id="v", call_id="c", files=[]),
    t.SessionEnded(outcome="done"),
    t.SessionContinued(),
    t.Unknown(type="?", data={}),
]


@given(st.lists(st.sampled_from(BODIES), max_size=60), st.lists(st.integers(0, 60), max_size=4))
def test_however_a_log_is_cut_it_counts_the_same(bodies: list[t.Body], cuts: list[int]) -> None:
    records = log(*bodies)
    whole = tally(records)
    made = Tally()
    at = 0
    for cut in [*sorted(cuts), len(records)]:
        made = tally(records[at:cut], deepcopy(made))
        made = msgspec.json.decode(msgspec.json.encode(made), type=Tally)
        at = max(at, cut)
    assert made == whole
    got = score(whole)
    assert 0 <= got.recovered <= got.failures
    assert 0 <= got.false_claims <= got.claims <= got.steps
    assert 0 <= got.passed <= got.criteria
    assert 0 <= got.points <= sum(phase.of for phase in got.phases) == got.criteria
    assert got.passed <= got.points + 1e-9
    assert got.blocked_seconds <= got.seconds


def test_what_was_undone_after_the_end_is_verified_no_more() -> None:
    over = [INTENT, verdict("one", True), t.SessionEnded(outcome="done", verified=True)]
    assert (figures(*over).proof, figures(*over).verified) == ("verified", True)
    made = figures(*over, t.UndoEnded(undo_id="u1", call_id="c1.0"))
    assert (made.proof, made.verified, made.undone) == ("not_verified", False, 1)
    taken = figures(*over, t.UndoEnded(undo_id="b1", call_id="c1.0"))
    assert (taken.verified, taken.undone) == (True, 0), "what checks wrote before the work is none of it"


def test_checks_are_counted_by_how_they_stood_before_the_work() -> None:
    seen = [
        t.CheckVerdict(call_id="c9.0", command="one", passed=True, before="failed"),
        t.CheckVerdict(call_id="c9.1", command="two-a", passed=True, before="passed"),
        t.CheckVerdict(call_id="c9.2", command="two-b", passed=False, before="passed"),
    ]
    made = figures(INTENT, *seen)
    assert (made.now_passing, made.still_passing) == (1, 1)
