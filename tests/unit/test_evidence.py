"""Where nothing but its word says that the work is done, an agent is asked for evidence before it ends."""

from __future__ import annotations

import pytest

from harness.agents import done, steps
from harness.agents.judged import JudgeWant
from harness.brain import decide
from harness.domain.states import ParkedFor
from harness.events import types as t
from harness.events.plan.iteration_events import UNDECIDED
from tests.unit.test_brain_loop import World, text, use

GIVEN = done.Asked(rounds=1)


def claims(w: World, words: str = "all done") -> decide.Step:
    w.ask()
    w.reply("end_turn", text(words))
    return w.step()


def asked(w: World, step: decide.Step) -> None:
    assert isinstance(step, steps.Say), step
    assert step.evidence
    w.put(t.UserMessage(text=step.text, origin="harness", evidence=True))


def works(w: World, number: int) -> None:
    w.ask()
    w.reply("tool_use", use(number))
    for call_id in w.propose():
        w.end(call_id)


@pytest.mark.parametrize("rounds", [1, 2, 3])
def test_the_agents_word_counts_after_as_many_requests_for_evidence(rounds: int) -> None:
    w = World(evidence_rounds=rounds)
    for n in range(rounds):
        step = claims(w)
        assert isinstance(step, steps.Say)
        assert f"request {n + 1} of {rounds}" in step.text
        asked(w, step)
    end = claims(w, "ran it: 3 passed")
    assert isinstance(end, steps.End)
    assert (end.outcome, end.verified, end.still, end.judged) == ("done", False, False, False)
    assert end.summary == "ran it: 3 passed"


@pytest.mark.parametrize(
    ("calls", "says"),
    [(0, "asked for evidence 1 time, the agent says that it is done and ran nothing more"), (2, "after 2 more calls")],
)
def test_the_end_says_what_the_agent_did_when_it_was_asked(calls: int, says: str) -> None:
    w = World(evidence_rounds=1)
    asked(w, claims(w))
    for number in range(calls):
        works(w, number)
    end = claims(w)
    assert isinstance(end, steps.End)
    assert end.reason.startswith("no check was given")
    assert says in end.reason


def test_words_of_a_person_begin_the_requests_anew() -> None:
    w = World(evidence_rounds=1)
    asked(w, claims(w))
    assert isinstance(claims(w), steps.End)
    w.put(t.UserMessage(text="and the other one"))
    asked(w, claims(w))
    assert isinstance(claims(w), steps.End)


def test_a_question_to_the_person_is_put_to_him_in_each_round() -> None:
    w = World(evidence_rounds=2)
    step = claims(w, "Which of the two databases shall I use?")
    assert isinstance(step, steps.Park)
    assert step.why == ParkedFor.QUESTION
    w.put(t.UserMessage(text="the first"))
    asked(w, claims(w))
    step = claims(w, "Shall I remove the old table too?")
    assert isinstance(step, steps.Park)
    assert step.why == ParkedFor.QUESTION


def test_a_session_that_is_told_to_finish_up_is_asked_nothing_more() -> None:
    w = World(evidence_rounds=3)
    w.put(t.FinishUp(allowance_nano=1))
    end = claims(w)
    assert isinstance(end, steps.End)
    assert end.reason == "finished up at its cap; no check was given"


def test_what_checks_or_a_judge_decide_needs_no_such_request() -> None:
    w = World(checks=["make test"], evidence_rounds=3)
    assert isinstance(claims(w), steps.Check)
    w.check(0)
    assert isinstance(w.step(), steps.End)
    judged = done.settle(done.Claim("done"), done.Evidence((), evidence=GIVEN, evaluation_loop=JudgeWant(3)))
    assert judged == steps.Judge(1)


def test_a_task_that_no_check_decides_is_asked_about_too() -> None:
    seen = done.Evidence((), task="T1", evidence=GIVEN)
    assert isinstance(done.settle(done.Claim("done"), seen), steps.Say)
    over = done.settle(done.Claim("done"), done.Evidence((), task="T1", evidence=done.Asked(1, 1, 4)))
    assert isinstance(over, steps.Turned)
    assert over.outcome == UNDECIDED
    assert "after 4 more calls" in over.reason


def test_checks_that_hide_their_exit_codes_decide_nothing_here_either() -> None:
    ended = t.ToolEnded(call_id="c", status="ok", preview="", exit_code=0)
    ran = {"x | tail": done.Result(ended, t.CheckVerdict(call_id="c", command="x | tail", passed=True))}
    seen = done.Evidence(("x | tail",), ran, masked=("x | tail",), evidence=GIVEN)
    assert isinstance(done.settle(done.Claim("done"), seen), steps.Say)
    trusted = done.Evidence(("x | tail",), ran, masked=("x | tail",), trusted=("x | tail",), evidence=GIVEN)
    assert isinstance(done.settle(done.Claim("done"), trusted), steps.End)


def test_what_is_left_running_is_waited_for_first() -> None:
    step = done.settle(done.Claim("done"), done.Evidence((), at_work="1 job", evidence=GIVEN))
    assert step == steps.Park(ParkedFor.JOB, "1 job")
