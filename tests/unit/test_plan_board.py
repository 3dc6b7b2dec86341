"""A plan as clients see it: what the fold says of it, and how it reads in lines."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from harness.events import types as t
from harness.plan.board import board, checks
from harness.projections.state import plan_state
from harness.projections.state.session_state import SessionState
from harness.views.plan_views import EntryView, PhaseView, PlanBoard
from tests.logs import checked_before
from tests.unit.test_plan_phases import Told, story, text
from widgets.plan.plan_board import as_file, checks_as_file
from widgets.plan.plan_view import MAX_LINES, NOW

NAMES = ["a", "b", "c", "d"]
STATES = {
    plan_state.PENDING,
    plan_state.IN_PROGRESS,
    plan_state.PASSED,
    plan_state.FAILED,
    plan_state.BLOCKED,
}
PLAN = text(
    [story("a", phase="build"), story("b", phase="build"), story("c", phase="ship", gate="out"), story("d")],
    phases=["build"],
)


def of(told: Told) -> PlanBoard:
    made = board(told.state)
    assert made is not None
    return made


def seen(plan: PlanBoard) -> list[tuple[str, str]]:
    return [(line.kind, line.text) for line in as_file(plan).lines]


def test_without_a_plan_there_is_none() -> None:
    assert board(SessionState()) is None


def test_without_a_plan_the_checks_say_how_they_stand() -> None:
    state = SessionState(checks={"lint": 0, "unit": 1, "slow": None, "weak": 0, "quick": None})
    for known in (*checked_before("unit", "slow"), *checked_before("weak", "quick", passed=True)):
        state.before.checked(known)
    assert [one.outcome for one in checks(state)] == ["passes", "fails", "", "still_passes", ""]
    assert [one.before for one in checks(state)] == ["unknown", "failed", "failed", "passed", "passed"]
    shown = checks_as_file(checks(state))
    assert [(line.kind, line.text) for line in shown.lines] == [
        ("done", "lint"),
        ("failed", "unit"),
        ("open", "slow"),
        ("fact", "failed before the work"),
        ("still", "weak"),
        ("fact", "still passes: it did before the work, too"),
        ("open", "quick"),
        ("fact", "passed before the work"),
    ]
    assert (shown.done, shown.total) == (2, 5)
    state.checks["slow"] = 0
    assert ("fact", "now passes: it failed before the work") in [
        (line.kind, line.text) for line in checks_as_file(checks(state)).lines
    ]
    assert checks_as_file([]).lines[0].text == "none was given: nothing decides that it is done"


def test_it_follows_what_is_at_hand_what_failed_and_a_gate() -> None:
    told = Told(text([story("a"), story("b"), story("c", phase="ship", gate="it goes out", depends_on=["a"])]))
    plan = of(told)
    assert (plan.at, plan.next, plan.phase, plan.passed) == ("", "a", "", 0)
    assert ("next", "a  a  ← next") in seen(plan)
    told.say(t.IterationStarted(n=1, entry="a", attempt=1, digest=""))
    told.say(t.PlanUpdated(steps=["look", "write"]))
    assert (of(told).at, of(told).steps) == ("a", ["look", "write"])
    assert (NOW, "a  a") in seen(of(told))
    assert ("text", "  steps: 1. look; 2. write") in seen(of(told))
    at = told.verdict("a", False, 1)
    told.say(t.IterationEnded(n=1, entry="a", outcome="failed"))
    failed = of(told).entries[0]
    assert (failed.state, failed.attempts, failed.evidence) == ("failed", 1, [at])
    assert ("fact", f"failed; 1 attempt; checked at #{at}") in seen(of(told))
    told.say(t.IterationStarted(n=2, entry="b", attempt=1, digest=""))
    for name in ("a", "b"):
        told.flip(name)
    assert of(told).at == "", "what passes is not worked on, although its task is not closed yet"
    (_, ship) = of(told).phases
    assert (ship.held, ship.opened) == (True, False)
    assert ("call", "gate, waits for you: it goes out") in seen(of(told))
    told.say(t.GateOpened(phase="ship"))
    assert ("opened", "gate, opened by you: it goes out") in seen(of(told))
    assert of(told).next == "c"


STEPS = st.lists(
    st.tuples(st.sampled_from(["begin", "end", "pass", "fail", "regress", "block", "open"]), st.sampled_from(NAMES)),
    max_size=30,
)


@given(STEPS)
def test_counts_and_marks_agree_whatever_happened(steps: list[tuple[str, str]]) -> None:
    told = Told(PLAN)
    for n, (what, name) in enumerate(steps):
        match what:
            case "begin":
                told.say(t.IterationStarted(n=n, entry=name, attempt=1, digest=""))
            case "end":
                told.say(t.IterationEnded(n=n, entry=name, outcome="failed"))
            case "pass" | "regress":
                told.flip(name, what == "pass")
            case "fail":
                told.verdict(name, False, n)
            case "block":
                told.say(t.PlanUpdated(entry=name, state="blocked", reason="why"))
            case _:
                told.say(t.GateOpened(phase="ship"))
    plan = of(told)
    assert msgspec.convert(msgspec.to_builtins(plan), PlanBoard) == plan
    assert {entry.state for entry in plan.entries} <= STATES
    assert plan.passed == sum(entry.state == "passed" for entry in plan.entries)
    assert plan.passed == sum(phase.passed for phase in plan.phases)
    assert sum(phase.total for phase in plan.phases) == len(plan.entries)
    shown = as_file(plan)
    assert (shown.done, shown.total) == (plan.passed, 4)
    assert sum(line.kind == NOW for line in shown.lines) == bool(plan.at)
    assert all(any(line.text.startswith(f"{name}  ") for line in shown.lines) for name in NAMES)


def test_a_plan_of_thousands_of_entries_says_what_it_leaves_out() -> None:
    entries = [EntryView(id=str(n), title="x", state="pending") for n in range(5000)]
    plan = PlanBoard(
        path="p", passed=0, phase="", phases=[PhaseView(name="", passed=0, total=5000)], entries=entries, next="0"
    )
    lines = as_file(plan).lines
    assert len(lines) == MAX_LINES + 1
    assert lines[-1].text == "3000 more lines"
