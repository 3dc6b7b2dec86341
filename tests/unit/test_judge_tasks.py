"""A judge that looks at each task: its word drives the attempts, and no task passes without it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.agents import steps
from harness.brain import decide
from harness.domain.calls.chores import COMMIT
from harness.events import types as t
from harness.events.plan import evaluation_events as ev
from harness.judge import case
from harness.judge.case import Case, Criterion
from harness.plan import due
from harness.projections.state.evaluation import JudgeStage
from harness.projections.state.iterations import Iterations
from harness.projections.state.session_state import SessionState
from harness.protocol.connection.op import Op
from harness.protocol.keeper_requests import Stored
from harness.reports.describe import describe
from harness.supervisor.calls.work import evaluation
from harness.supervisor.fleet.session import Session
from harness.tools import registry
from tests.unit.test_iterations import DONE, Planned, Truth, begun, entry, good

CYCLES = 2
A = entry("A", "check a")
B = entry("B", undecided=1)


class Judged(Planned):
    """The judge says these words one after the other, and is satisfied with all that comes after them."""

    def __init__(
        self,
        *words: str,
        at: str = ev.AT_TASK,
        fresh: str = "per-task",
        entries: Sequence[t.PlanEntry] = (A, B),
        truth: Truth = good,
    ) -> None:
        super().__init__(*entries, truth=truth, judge=t.JudgeWanted("m", CYCLES, at), attempts=2, fresh=fresh)
        self.words = list(words)
        self.entries = tuple(entries)

    def claim(self) -> steps.Judge:
        """The agent says that it is done, and the judge is to look."""
        self.serve()
        self.ask()
        self.reply("end_turn", DONE)
        return self.asks()

    def asks(self) -> steps.Judge:
        step = self.settle()
        assert isinstance(step, steps.Judge), step
        return step

    def turn(self, *said: dict[str, object]) -> decide.Step:
        step = super().turn(*said)
        while isinstance(step, steps.Judge):
            self.judge(step)
            step = self.settle()
        return step

    def judge(self, step: steps.Judge) -> None:
        """The case, and the verdict on it."""
        word = self.words.pop(0) if self.words else ev.SATISFIED
        self.put(*self.evaluation(step, word))

    def evaluation(self, step: steps.Judge, word: str) -> tuple[t.Body, t.Body, t.Body]:
        """Asked for, laid out, answered; all of it is said to hold, or nothing."""
        undecided = [e.id for e in self.entries if e.undecided]
        named = [f"{ev.PLAN_CRITERION}{name}" for name in ([step.task] if step.task else undecided)]
        named = named if step.task else ["goal", *named]
        common: dict[str, Any] = {"cycle": step.cycle, "cycles": CYCLES, "model": "m", "rubric": ""}
        return (
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


@pytest.mark.parametrize("undecided", [0, 1])
def test_a_check_of_all_tasks_that_fails_for_a_while_takes_the_judges_word_from_none(undecided: int) -> None:
    names = [f"E{n}" for n in range(5)]
    seen: set[str] = set()

    def breaks_first(command: str) -> int:
        at = w.view.state.iterations.entry
        if command != "make test" or not at or at in seen:
            return 0
        seen.add(at)
        return 1

    entries = [entry(name, f"check {name}", "make test", undecided=undecided) for name in names]
    w = Judged(entries=entries, truth=breaks_first)
    end = w.play()
    assert (end.outcome, begun(w)) == ("done", names), end.reason
    assert seen == set(names)
    assert [b.entry for b in w.all(t.EvaluationRequested) if isinstance(b, t.EvaluationRequested)] == [*names, ""]


UNDONE = ("all undone", "the newest undone", "the next undone", "an undo undone", "half undone")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["A", "B", "not A", "not B", "whole", "not whole", *UNDONE, "said"]), max_size=12))
def test_a_task_is_accepted_until_the_judge_or_an_undo_takes_it_back(steps_: list[str]) -> None:
    w = Judged()
    accepted: dict[str, int] = {}
    for one in steps_:
        name = one.removeprefix("not ")
        match name:
            case "all undone":
                w.put(t.UndoEnded(undo_id="u1", call_id="c1.0"))
                accepted = {}
            case "the newest undone":
                w.put(t.UndoEnded(undo_id="u1", call_id=f"c{max(accepted.values(), default=1)}.0"))
                accepted = dict(sorted(accepted.items(), key=lambda had: had[1])[:-1])
            case "the next undone":
                w.put(t.UndoEnded(undo_id="u1", call_id=f"c{w.view.state.seq + 1}.0"))
            case "an undo undone" | "half undone":
                call = "u7" if name == "an undo undone" else f"c{w.view.state.seq + 1}.0"
                w.put(t.UndoEnded(undo_id="u8", call_id=call, refused_count=int(name == "half undone")))
                accepted = {}
            case "said":
                w.put(t.UserMessage(text="and more", origin="human"))
            case _:
                task = "" if name == "whole" else name
                word = ev.SATISFIED if one == name else ev.NEEDS_REVISION
                w.put(*w.evaluation(steps.Judge(1, task), word))
                if word != ev.SATISFIED:
                    accepted.pop(task or "B", None)
                elif task:
                    accepted.setdefault(task, w.view.state.seq)
        assert w.view.state.judging.accepted == accepted


@settings(max_examples=80, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("ABCD"), st.sampled_from(["committed", "left", "continued"])), max_size=12))
def test_a_task_is_compared_with_where_its_first_attempt_began_whatever_came_between(
    done: list[tuple[str, str]],
) -> None:
    at = Iterations()
    loose: list[str] = []
    heads: dict[str, str] = {}
    shown: dict[str, set[str]] = {}
    for n, (name, then) in enumerate(done, 1):
        heads.setdefault(name, f"c{n}")
        shown.setdefault(name, set(loose))
        for others in shown.values():
            others.add(name)
        attempt = at.attempts.get(name, 0) + 1
        at = at.started(n, t.IterationStarted(n=n, entry=name, attempt=attempt, digest="", head=f"c{n}"))
        at = at.ended(t.IterationEnded(n=n, entry=name, outcome="failed", reason=""))
        loose.append(name)
        if then == "committed":
            chore = {"chore": COMMIT, "command": "git commit"}
            at = at.proposed(t.ToolProposed(call_id="c1.0", tool=registry.CHORE, ref="", input=chore))
            at = at.chore_ended("c1.0", ended())
            loose = []
        elif then == "continued":
            at = at.continued()
    assert {name: began.head for name, began in at.began.items()} == heads
    assert {name: set(at.beside(name)) for name in heads} == {name: shown[name] - {name} for name in heads}


def test_a_commit_that_failed_leaves_the_work_of_the_task_to_the_next() -> None:
    at = Iterations().started(1, t.IterationStarted(n=1, entry="A", attempt=1, digest=""))
    at = at.ended(t.IterationEnded(n=1, entry="A", outcome="passed", reason=""))
    chore = {"chore": COMMIT, "command": "git commit"}
    at = at.proposed(t.ToolProposed(call_id="c1.0", tool=registry.CHORE, ref="", input=chore))
    at = at.chore_ended("c1.0", ended(1))
    at = at.started(2, t.IterationStarted(n=2, entry="B", attempt=1, digest=""))
    assert at.beside("B") == ("A",)


def test_the_case_names_the_other_tasks_whose_work_may_be_in_it() -> None:
    one = Case(goal="g", criteria=(Criterion("plan A", "A: it works"),), patch="+a", task=True)
    assert "Work on other tasks" not in case.text(one)
    assert "Work on other tasks may be in the change too" in case.text(replace(one, beside=("B", "C")))
    many = case.text(replace(one, beside=tuple(f"T{n}" for n in range(30))))
    assert "T19 and 10 more" in many


def test_a_case_that_was_laid_out_while_a_person_spoke_is_of_no_use() -> None:
    w = Judged()
    asked, laid_out, word = w.evaluation(w.claim(), ev.SATISFIED)
    w.put(asked, t.UserMessage(text="Do X first", origin="human"), laid_out)
    assert w.view.state.judging.stage is JudgeStage.NONE
    owed = w.view.state.course.owed[0]
    w.put(t.PlanUpdated(steps=[], trigger=owed.trigger, reason=owed.reason, about=owed.about))
    assert isinstance(w.step(), decide.Ask), "the agent hears it; the judge is not asked"
    w.put(word)
    assert (due.due(w.view.state), w.view.state.judging.satisfied) == ([], False)


class LayingOut:
    """A session whose case takes a while; ``meanwhile`` comes on record before it is done."""

    def __init__(self, world: Judged, *meanwhile: t.Body) -> None:
        self.world = world
        self.meanwhile = meanwhile
        self.folder = SimpleNamespace(log=Path("/nowhere"))

    @property
    def state(self) -> SessionState:
        return self.world.view.state

    def keeper(self) -> LayingOut:
        return self

    async def ask(self, _: Op[object]) -> Stored:
        return Stored("0" * 64, 1)

    async def do(self, *_: object) -> Case:
        self.world.put(*self.meanwhile)
        return Case(goal="g", criteria=(Criterion("plan A", "A: it works"),), task=True)

    async def append(self, *bodies: t.Body) -> None:
        self.world.put(*bodies)


SAID = t.UserMessage(text="Do X first", origin="human")


@pytest.mark.parametrize(
    ("meanwhile", "laid_out"),
    [
        ([], 1),
        ([SAID], 0),
        ([SAID, t.EvaluationRequested(cycle=1, entry="A")], 0),
        ([t.FinishUp(allowance_nano=1)], 0),
    ],
)
def test_a_case_is_put_on_record_only_for_the_request_that_it_was_laid_out_for(
    meanwhile: list[t.Body], laid_out: int
) -> None:
    w = Judged()
    w.put(w.evaluation(w.claim(), ev.SATISFIED)[0])
    asyncio.run(evaluation.step(cast(Session, LayingOut(w, *meanwhile))))
    assert len(w.all(t.EvaluationStarted)) == laid_out


@pytest.mark.parametrize("laid_out", [False, True])
def test_who_finishes_up_pays_no_judge_first(laid_out: bool) -> None:
    w = Judged()
    w.put(*w.evaluation(w.claim(), ev.SATISFIED)[: 1 + laid_out])
    w.put(t.SessionParked(why="cap"), t.FinishUp(allowance_nano=1))
    step = w.step()
    assert isinstance(step, decide.Ask), step
    assert step.finish


@pytest.mark.parametrize(
    ("at", "words"),
    [
        (ev.AT_TASK, [ev.FAILED]),
        (ev.AT_TASK, [ev.NONE]),
        (ev.AT_END, [ev.FAILED]),
        (ev.AT_END, [ev.NEEDS_REVISION] * 2),
    ],
)
def test_to_try_again_has_the_judge_look_again_whatever_its_word_was(at: str, words: list[str]) -> None:
    w = Judged(*words, at=at)
    step = w.turn(DONE)
    while isinstance(step, decide.Ask):
        step = w.turn(DONE)
    assert isinstance(step, steps.Park)
    assert step.why == "judge"
    w.put(t.SessionParked(why=step.why, detail=step.detail))
    again = w.asks()
    assert again.cycle == len(words) + 1
    w.put(*w.evaluation(again, ev.FAILED))
    assert isinstance(w.settle(), steps.Park), "it is asked once for each time that a person wants it"


def test_a_pause_behind_its_word_does_not_ask_the_judge_again() -> None:
    w = Judged()
    w.put(*w.evaluation(w.claim(), ev.NONE), t.SessionParked(why="paused"))
    step = w.settle()
    assert isinstance(step, steps.Park)
    assert step.why == "judge"


def ended(code: int = 0) -> t.ToolEnded:
    return t.ToolEnded(call_id="c1.0", status="ok" if code == 0 else "error", exit_code=code, preview="")
