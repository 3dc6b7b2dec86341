"""A judge that looks at each task: its word drives the attempts, and no task passes without it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.agents import steps
from harness.brain import decide
from harness.events import evaluation_events as ev
from harness.events import types as t
from harness.events.describe import describe
from harness.judge import case
from harness.judge.case import Case, Criterion
from harness.plan.due import PLAN_CRITERION
from tests.unit.test_iterations import DONE, Planned, begun, entry, good

CYCLES = 2
A, B = entry("A", "check a"), entry("B", undecided=1)


class Judged(Planned):
    """The judge says these words one after the other, and is satisfied with all that comes after them."""

    def __init__(self, *words: str, at: str = ev.AT_TASK, fresh: str = "per-task") -> None:
        super().__init__(A, B, truth=good, judge=t.JudgeWanted("m", CYCLES, at), attempts=2, fresh=fresh)
        self.words = list(words)

    def turn(self, *said: dict[str, object]) -> decide.Step:
        step = super().turn(*said)
        while isinstance(step, steps.Judge):
            self.judge(step)
            step = self.settle()
        return step

    def judge(self, step: steps.Judge) -> None:
        """The case, and the verdict on it."""
        word = self.words.pop(0) if self.words else ev.SATISFIED
        named = [f"{PLAN_CRITERION}{step.task}"] if step.task else ["goal", f"{PLAN_CRITERION}B"]
        common: dict[str, Any] = {"cycle": step.cycle, "cycles": CYCLES, "model": "m", "rubric": ""}
        self.put(
            t.EvaluationRequested(cycle=step.cycle, entry=step.task),
            t.EvaluationStarted(**common, role="evaluator", case=t.BlobRef("0" * 64, 1), criteria=named),
            t.EvaluationEnded(
                **common,
                verdict=word,
                summary=f"it says {word}",
                findings=[t.Finding(name, word == ev.SATISFIED, "seen") for name in named],
            ),
        )

    def play(self) -> steps.End:
        """Until it ends; an agent that always says that it is done."""
        for _ in range(50):
            if isinstance(step := self.turn(DONE), steps.End):
                return step
        raise AssertionError("it does not come to an end")

    def outcomes(self) -> list[tuple[str, str]]:
        return [(b.entry, b.outcome) for b in self.all(t.IterationEnded) if isinstance(b, t.IterationEnded)]


def test_a_task_that_is_sent_back_is_worked_on_and_the_next_begins_when_the_judge_is_satisfied() -> None:
    w = Judged(ev.NEEDS_REVISION)
    assert isinstance(w.turn(DONE), decide.Ask)
    assert "sends it back" in w.request_text()
    assert w.view.state.plan is not None
    assert not w.view.state.plan.passes["A"], "its check passed, and the judge is not satisfied"
    end = w.play()
    assert (end.outcome, end.verified) == ("done", True)
    assert w.outcomes() == [("A", "passed"), ("B", "passed")]
    asked = [(b.entry, b.cycle) for b in w.all(t.EvaluationRequested) if isinstance(b, t.EvaluationRequested)]
    assert asked == [("A", 1), ("A", 2), ("B", 1), ("", 1)], "each task has cycles of its own, and the whole has"
    told = [describe(r).summary for r in w.records if isinstance(r.body, t.EvaluationRequested)]
    assert ["the task A" in line for line in told] == [True, True, False, False]


def test_sent_back_as_often_as_allowed_is_an_attempt_that_failed_and_the_next_is_told_why() -> None:
    w = Judged(*[ev.NEEDS_REVISION] * CYCLES)
    w.turn(DONE)
    w.turn(DONE)
    assert begun(w) == ["A", "A"]
    assert w.outcomes() == [("A", "failed")]
    assert f"it says {ev.NEEDS_REVISION}" in w.request_text()
    end = w.play()
    assert (end.outcome, w.outcomes()[1:]) == ("done", [("A", "passed"), ("B", "passed")])


def test_where_every_claim_that_does_not_hold_begins_anew_so_does_one_that_the_judge_sends_back() -> None:
    w = Judged(ev.NEEDS_REVISION, fresh="per-iteration")
    w.turn(DONE)
    assert (begun(w), w.outcomes()) == (["A", "A"], [("A", "failed")])
    assert f"it says {ev.NEEDS_REVISION}" in w.request_text()
    assert w.play().outcome == "done"


@pytest.mark.parametrize(("at", "words"), [(ev.AT_TASK, [ev.NEEDS_REVISION] * 4), (ev.AT_END, [])])
def test_a_task_that_the_judge_never_accepts_ends_the_run_stuck(at: str, words: list[str]) -> None:
    w = Judged(*words, at=at)
    end = w.play()
    if at == ev.AT_TASK:
        assert (end.outcome, end.verified) == ("failed", False)
        assert "stuck: A" in end.reason
    else:
        assert (end.outcome, len(w.all(t.EvaluationRequested))) == ("done", 1), "as before, at the end alone"


def test_a_verdict_that_no_cycle_mends_asks_the_person() -> None:
    step = Judged(ev.FAILED).turn(DONE)
    assert isinstance(step, steps.Park)
    assert step.why == "judge"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from([ev.SATISFIED, ev.NEEDS_REVISION]), max_size=14))
def test_whatever_it_says_no_task_passes_without_its_word_and_the_run_ends(words: list[str]) -> None:
    w = Judged(*words)
    with_word: set[str] = set()
    end = w.turn(DONE)
    for _ in range(60):
        if not isinstance(end, decide.Ask):
            break
        end = w.turn(DONE)
    asked = ""
    for record in w.records:
        match record.body:
            case t.EvaluationRequested() as b:
                asked = b.entry
            case t.EvaluationEnded(verdict=ev.SATISFIED):
                with_word |= {asked} if asked else {"A", "B"}
            case t.PlanFlipped(entry=name, passes=True):
                assert name in with_word
            case t.PlanFlipped(entry=name):
                with_word.discard(name)
    attempts = [begun(w).count(name) for name in "AB"]
    assert max(attempts) <= 2
    if isinstance(end, steps.End) and end.verified:
        assert w.view.state.judging.satisfied
    else:
        assert isinstance(end, (steps.End, steps.Park)), end


def test_the_case_of_a_task_says_that_it_is_one() -> None:
    one = Case(goal="g", criteria=(Criterion("plan A", "A: it works"),), patch="+a", task=True)
    assert "one task of a plan" in case.text(one)
    assert "a finding for each of plan A;" in case.text(one)
