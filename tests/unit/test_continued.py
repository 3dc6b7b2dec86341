"""Going on after the end, and replies that end in a question: what the fold says and what the loop decides."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given as any_of
from hypothesis import strategies as st

from harness.agents import agent_loop, steps
from harness.agents import done as done_rule
from harness.agents.judged import JudgeWant
from harness.brain import conversation, decide
from harness.events import types as t
from harness.projections.apply import advance, fold
from harness.projections.state.session_state import OpenApproval, SessionState
from harness.reports.describe import describe
from harness.supervisor.base.errors import OpError
from harness.supervisor.calls import call_caps
from harness.supervisor.calls.queue import questions
from harness.supervisor.sessions import continuing
from tests.unit.test_brain_loop import World, shape, text, use

QUESTION = "I see two ways.\n\nShould I keep the old API?"


def at(hour: int, body: t.Body) -> t.Record:
    return record(hour, body, f"2026-11-21T{hour:02d}:00:00.000Z")


def record(seq: int, body: t.Body, ts: str = "2026-11-21T03:00:00.000Z") -> t.Record:
    return t.Record(seq, ts, "test", 0, body)


def ended(*before: t.Body, outcome: str = "stopped") -> SessionState:
    intent = t.SessionIntent(
        name="n",
        goal="g",
        repo="/r",
        branch="b",
        worktree="/w",
        model="m",
        checks=["a"],
        caps=t.Caps(usd_nano=5),
        max_rounds=2,
    )
    return fold(record(i, b) for i, b in enumerate([intent, *before, t.SessionEnded(outcome=outcome)]))


# -- time that counts against no cap ---------------------------------------------------------------

KEEPER = t.KeeperStarted(pid=1, start=1, boot="b")
LIMITED = t.SessionParked(why="limited")


@pytest.mark.parametrize(
    ("bodies", "away_h"),
    [
        ([LIMITED, t.LeaseGranted(gen=1, epoch=1)], 1),
        ([t.SessionParked(why="approval"), t.LeaseGranted(gen=1, epoch=1)], 0),
        ([LIMITED, t.SessionEnded(outcome="stopped"), t.SessionContinued()], 2),
        ([t.TimePassed(seconds=7200), t.TimePassed(seconds=-3600)], 1),
        ([KEEPER, t.UserMessage(text="x", origin="human"), t.KeeperStarted(pid=1, start=1, boot="another")], 1),
        ([KEEPER, t.UserMessage(text="x", origin="human"), t.KeeperStarted(pid=2, start=2, boot="b")], 0),
        (
            [
                KEEPER,
                LIMITED,
                t.KeeperStarted(pid=1, start=1, boot="c"),
                t.TimePassed(seconds=7200),
                t.LeaseGranted(gen=1, epoch=1),
            ],
            3,
        ),
    ],
)
def test_time_in_which_nobody_could_work_counts_against_no_cap(bodies: list[t.Body], away_h: int) -> None:
    intent = t.SessionIntent(
        name="n", goal="g", repo="/r", branch="b", worktree="/w", model="m", caps=t.Caps(wall_s=3600)
    )
    s = fold(at(i, b) for i, b in enumerate([intent, *bodies]))
    assert s.away_s == away_h * 3600
    now = datetime(2026, 11, 21, len(bodies), tzinfo=UTC)
    assert call_caps.wall_used(s, now) == (len(bodies) - away_h) * 3600


# -- the fold --------------------------------------------------------------------------------------


def test_a_continued_session_is_wanted_running_whatever_ended_it() -> None:
    for before in (
        [t.SessionDesired(state="stopped", reason="enough")],
        [t.Quarantined(part="brain", reason="r", restarts=3)],
        [t.SessionParked(why="cap")],
    ):
        s = ended(*before, t.FinishUp(allowance_nano=1))
        advance(s, record(s.seq + 1, t.SessionContinued()))
        assert (s.ended, s.desired, s.desired_reason, s.quarantined, s.parked, s.finish_up) == (
            None,
            "running",
            "",
            None,
            None,
            None,
        )


def test_what_was_given_holds_from_then_on_and_the_rest_as_before() -> None:
    s = ended()
    s.checks = {"a": 0}
    advance(s, record(3, t.SessionContinued()))
    assert (s.checks, s.caps, s.max_rounds) == ({"a": None}, t.Caps(usd_nano=5), 2)
    advance(s, record(4, t.SessionContinued(rounds=7, caps=t.Caps(tokens=9), checks=["b", "c", "b"])))
    assert (s.checks, s.caps, s.max_rounds) == ({"b": None, "c": None}, t.Caps(tokens=9), 7)


def test_the_time_between_end_and_continuing_counts_against_no_cap() -> None:
    s = ended()
    advance(s, record(s.seq + 1, t.SessionContinued(), "2026-11-21T05:00:30.000Z"))
    assert s.away_s == 2 * 3600 + 30
    advance(s, record(s.seq + 1, t.SessionEnded(outcome="failed"), "not a time"))
    advance(s, record(s.seq + 1, t.SessionContinued(), "2026-11-21T06:00:00.000Z"))
    assert s.away_s == 2 * 3600 + 30


def test_an_undo_after_the_end_is_remembered_until_it_goes_on() -> None:
    s = ended()
    advance(s, record(s.seq + 1, t.UndoEnded(undo_id="u1", call_id="c1.0")))
    assert s.undone_since
    advance(s, record(s.seq + 1, t.SessionContinued()))
    assert not s.undone_since


def test_the_record_reads_as_a_sentence() -> None:
    body = t.SessionContinued(
        rounds=3, caps=t.Caps(usd_nano=2_000_000_000), checks=["make test"], by=t.By(client="cli")
    )
    assert (
        describe(record(0, body)).summary
        == "continued by you, on the command line · 3 rounds · caps: $2.00 · checks: make test"
    )
    assert describe(record(0, t.SessionContinued())).summary == "continued"


# -- rounds and checks -----------------------------------------------------------------------------


def failed_after_rounds() -> World:
    w = World(checks=["x"], max_rounds=1)
    w.ask()
    w.reply("end_turn", text("I did it."))
    w.check(1)
    step = w.step()
    assert isinstance(step, steps.End)
    assert step.outcome == "failed"
    w.put(t.SessionEnded(outcome="failed"))
    assert isinstance(w.step(), steps.Leave)
    return w


def test_after_failing_it_runs_its_checks_anew_and_goes_on_for_as_many_rounds_again() -> None:
    w = failed_after_rounds()
    w.put(t.SessionContinued(rounds=2))
    w.lease()
    w.check(1)
    step = w.step()
    assert isinstance(step, steps.Say)
    assert "1 more round left" in step.text
    w.put(t.UserMessage(text=step.text, origin="harness"))
    w.ask()
    w.reply("end_turn", text("Now."))
    w.check(1)
    assert isinstance(end := w.step(), steps.End)
    assert "after 2 rounds" in end.reason


def test_what_a_human_mended_meanwhile_is_seen_without_asking_the_model() -> None:
    w = failed_after_rounds()
    w.put(t.SessionContinued())
    w.lease()
    w.check(0)
    assert w.step() == steps.End("done", "1 of 1 checks passed: 1 now passes", verified=True, summary="I did it.")


def test_words_begin_a_new_count_of_rounds_also_while_it_runs() -> None:
    w = World(checks=["x"], max_rounds=2)
    w.ask()
    w.reply("end_turn")
    w.check(1)
    w.put(t.UserMessage(text="1 of 1 done criteria fail", origin="harness"))
    w.put(t.UserMessage(text="use the other table", origin="human"))
    w.ask()
    w.reply("end_turn")
    w.check(1)
    step = w.step()
    assert isinstance(step, steps.Say)
    assert "1 more round left" in step.text


def test_another_check_counts_beside_or_instead_of_the_first() -> None:
    w = World(checks=["x"])
    w.ask()
    w.reply("end_turn", text("done"))
    w.check(0)
    w.put(t.SessionEnded(outcome="done", verified=True), t.SessionContinued(checks=["x", "y"]))
    w.lease()
    assert w.step() == steps.Check(("x", "y"))
    w.check(0, 0)
    assert w.step() == steps.End("done", "2 of 2 checks passed: 2 now pass", verified=True, summary="done")
    w.put(t.SessionEnded(outcome="done", verified=True), t.SessionContinued(checks=["y"]))
    assert w.step() == steps.Check(("y",))


def test_words_are_asked_at_once() -> None:
    w = World()
    w.ask()
    w.reply("end_turn", text("done"))
    w.put(t.SessionEnded(outcome="done"), t.SessionContinued(), t.UserMessage(text="and the docs", origin="human"))
    w.lease()
    assert isinstance(w.step(), decide.Ask)
    assert shape(w.view)[-1]["content"][-1]["text"] == "and the docs"


def test_calls_that_the_end_cut_off_are_not_made_and_the_model_reads_it() -> None:
    w = World()
    w.ask()
    w.reply("tool_use", use(1), use(2))
    step = w.step()
    assert isinstance(step, steps.Propose)
    call_id, first = step.calls[0]
    w.put(t.ToolProposed(call_id=call_id, tool=first.tool, input=first.input, ref=first.ref))
    w.put(
        t.SessionDesired(state="stopped"),
        t.ToolEnded(call_id=call_id, status="cancelled", preview="The session was stopped."),
    )
    w.put(t.SessionEnded(outcome="stopped"), t.SessionContinued(), t.UserMessage(text="go on", origin="human"))
    w.lease()
    assert isinstance(w.step(), decide.Ask)
    results = [b for b in shape(w.view)[-1]["content"] if b["type"] == "tool_result"]
    assert [r["is_error"] for r in results] == [True, True]
    assert "nothing ran" in results[1]["content"]


def test_after_finishing_up_at_a_cap_it_has_its_tools_again() -> None:
    w = World()
    w.ask()
    w.reply("tool_use", use(1))
    (call,) = w.propose()
    w.end(call)
    w.put(t.FinishUp(allowance_nano=1))
    w.ask()
    w.reply("end_turn", text("That is how far I came. Shall I go on?"))
    assert isinstance(end := w.step(), steps.End)
    assert end.reason.startswith("finished up at its cap")
    w.put(
        t.SessionEnded(outcome="done"),
        t.SessionContinued(caps=t.Caps(usd_nano=9)),
        t.UserMessage(text="go on", origin="harness"),
    )
    w.lease()
    step = w.step()
    assert isinstance(step, decide.Ask)
    assert not step.finish
    assert conversation.Talk().build(w.view).messages[-1]["role"] == "user"


def test_failures_from_before_the_end_do_not_count() -> None:
    w = World()
    w.ask()
    w.fail("auth")
    w.put(t.SessionDesired(state="stopped"), t.SessionEnded(outcome="stopped"), t.SessionContinued())
    w.lease()
    assert isinstance(w.step(), decide.Ask)


# -- a reply that ends in a question ---------------------------------------------------------------


def test_without_checks_a_question_waits_for_its_answer() -> None:
    w = World()
    w.ask()
    w.reply("end_turn", text(QUESTION))
    assert w.step() == steps.Park("question", QUESTION)
    w.put(t.SessionParked(why="question", detail=QUESTION))
    w.put(t.ApprovalRequested(approval_id="a1", kind="question", title="?", options=["answer", "done", "stop"]))
    w.lease()
    assert isinstance(w.step(), steps.Park)
    w.put(
        t.ApprovalDecided(approval_id="a1", decision_id="d1", decision="answer", message="keep it"),
        t.UserMessage(text="keep it", origin="human"),
    )
    assert isinstance(w.step(), decide.Ask)
    w.ask()
    w.reply("end_turn", text("Kept."))
    assert isinstance(w.step(), steps.End)


def test_a_question_beside_failing_checks_waits_too() -> None:
    w = World(checks=["x"], max_rounds=1)
    w.ask()
    w.reply("end_turn", text(QUESTION))
    w.check(1)
    assert w.step() == steps.Park("question", QUESTION)


def test_a_question_beside_checks_that_pass_waits_with_their_verdict() -> None:
    w = World(checks=["x"])
    w.ask()
    w.reply("end_turn", text(QUESTION))
    assert w.step() == steps.Check(("x",))
    w.check(0)
    asks = w.step()
    assert isinstance(asks, steps.Park)
    verdict = "all checks passed (1 of 1): 1 now passes"
    assert asks == steps.Park("question", QUESTION, verdict=verdict, verified=True)
    w.put(*agent_loop.parked(asks))
    w.put(t.ApprovalRequested(approval_id="a1", kind="question", title="?", options=["answer", "done", "stop"]))
    w.put(
        t.ApprovalDecided(approval_id="a1", decision_id="d1", decision="answer", message="keep it"),
        t.UserMessage(text="keep it", origin="human"),
    )
    w.lease()
    w.ask()
    w.reply("end_turn", text("Kept. Let me know if you have questions."))
    assert w.step() == steps.Check(("x",)), "what passed before the answer says nothing of the work after it"
    w.check(0)
    assert w.step() == steps.End(
        "done", "1 of 1 checks passed: 1 now passes", verified=True, summary="Kept. Let me know if you have questions."
    )


@any_of(
    commands=st.lists(st.sampled_from("abcd"), min_size=1, max_size=4, unique=True),
    failing=st.sets(st.sampled_from("abcd")),
    undecided=st.integers(0, 2),
    judge=st.booleans(),
)
def test_a_reply_that_asks_is_never_done_by_itself_and_verified_only_by_everything(
    commands: list[str], failing: set[str], undecided: int, judge: bool
) -> None:
    results = {
        c: done_rule.Result(
            t.ToolEnded(call_id=c, status="ok", exit_code=0),
            t.CheckVerdict(call_id=c, command=c, passed=c not in failing, before="failed"),
        )
        for c in commands
    }
    evaluation_loop = JudgeWant(2) if judge else None
    seen = done_rule.Evidence(
        tuple(commands), results, undecided=undecided, evaluation_loop=evaluation_loop, max_rounds=3
    )
    step = done_rule.settle(done_rule.Claim(QUESTION), seen)
    assert isinstance(step, steps.Park)
    assert (step.why, step.detail) == ("question", QUESTION)
    good = not failing & set(commands)
    assert bool(step.verdict) == good
    assert step.verified == (good and not undecided and not judge)
    assert ("the judge was not asked" in step.verdict) == (good and judge)


@pytest.mark.parametrize(
    ("park", "code", "reason", "verified"),
    [
        ({"verdict": "all checks passed (1 of 1)", "verified": True}, 0, "all checks passed (1 of 1)", True),
        ({"verdict": "all checks passed (1 of 1); x", "verified": False}, 0, "all checks passed (1 of 1); x", False),
        ({"verdict": "all checks passed (1 of 1)", "verified": True}, None, "0 of 1 checks pass", False),
        ({}, 0, "1 of 1 checks pass", False),
        ({}, 1, "0 of 1 checks pass", False),
    ],
)
def test_what_a_person_takes_as_finished_is_verified_when_every_check_passed_on_it(
    park: dict[str, Any], code: int | None, reason: str, verified: bool
) -> None:
    s = SessionState()
    s.checks = {"x": code}
    s.parked = t.SessionParked(why="question", detail=QUESTION, **park)
    asked = OpenApproval("a1", "question", "?", ["done"], "", "", "low", "", 7, {"asks": QUESTION})
    ended = questions.taken(s, asked)
    assert ended == t.SessionEnded(
        outcome="done", reason=f"you took it as finished; {reason}", verified=verified, summary=QUESTION
    )
    s.parked = None
    assert not questions.taken(s, asked).verified


@pytest.mark.parametrize("checks", [[], ["x"]])
def test_the_last_reply_at_a_cap_ends_it_whatever_it_asks(checks: list[str]) -> None:
    w = World(checks=checks)
    w.ask()
    w.reply("tool_use", use(1))
    (call,) = w.propose()
    w.end(call)
    w.put(t.FinishUp(allowance_nano=1))
    w.ask()
    w.reply("end_turn", text(QUESTION))
    if checks:
        w.check(1)
    assert isinstance(w.step(), steps.End)


# -- what may be given -----------------------------------------------------------------------------


def given(s: SessionState, used: t.Caps | None = None, **wish: object) -> list[t.Body]:
    return continuing.records("sid", s, continuing.parse(wish), used or t.Caps(), t.By())


def done(*, verified: bool = False, checks: dict[str, int | None] | None = None) -> SessionState:
    s = ended(outcome="done")
    s.ended = t.SessionEnded(outcome="done", verified=verified)
    passed = 0 if verified else None
    s.checks = {"a": passed} if checks is None else checks
    return s


def test_what_could_change_a_done_session_is_enough_and_nothing_else() -> None:
    assert [b.TYPE for b in given(done(verified=True), text="more")] == ["session.continued", "user.message"]
    assert given(done(verified=True), checks=["b"])[0] == t.SessionContinued(checks=["a", "b"])
    assert given(done(), rounds=2)[0] == t.SessionContinued(rounds=2)  # undone since: its checks are open again
    for s, wish in (
        (done(verified=True), {"rounds": 3}),
        (done(verified=True), {"checks": ["a"]}),
        (done(checks={}), {"more": {"usd_nano": 1}}),
    ):
        with pytest.raises(OpError) as caught:
            given(s, **wish)
        assert caught.value.code == "nothing"


def test_an_agent_is_told_what_it_could_not_know() -> None:
    stopped = ended()
    assert [getattr(b, "text", "") for b in given(stopped)] == ["", continuing.STOPPED]
    assert [getattr(b, "origin", "") for b in given(stopped, text="go")] == ["", "human"]
    stopped.undone_since = True
    assert [getattr(b, "text", "") for b in given(stopped, text="go")] == ["", continuing.UNDONE, "go"]
    finished = done(checks={})
    finished.finish_up = t.FinishUp(allowance_nano=1)
    assert [getattr(b, "text", "") for b in given(finished, more={"usd_nano": 1})] == ["", continuing.MORE_MONEY]
    assert given(ended(outcome="failed")) == [t.SessionContinued()]


def test_caps_are_set_added_to_or_lifted_and_never_below_what_is_used() -> None:
    assert given(ended(), caps={"tokens": 9}, more={"usd_nano": 2})[0] == t.SessionContinued(
        caps=t.Caps(usd_nano=7, tokens=9)
    )
    assert given(ended(), caps={"usd_nano": None})[0] == t.SessionContinued(caps=t.Caps())
    for wish in (
        {"caps": {"usd_nano": 4}},
        {"more": {"tokens": 1}},
        {"caps": {"usd_nano": -1}},
        {"caps": {"dollars": 1}},
    ):
        with pytest.raises(OpError) as caught:
            given(ended(), t.Caps(usd_nano=4), **wish)
        assert caught.value.code == "bad_caps"


def test_who_has_not_ended_is_shown_the_way_that_exists() -> None:
    running = fold([record(0, t.SessionIntent(name="n", goal="g", repo="/r", branch="b", worktree="/w", model="m"))])
    asked = t.ApprovalRequested(approval_id="a1", kind="question", title="?", options=["answer"])
    for body, way in (
        (t.HarnessNote(level="info", text="x"), "watchfloor say sid TEXT"),
        (t.SessionDesired(state="paused"), "watchfloor resume sid"),
        (asked, "watchfloor approvals a1"),
    ):
        advance(running, record(running.seq + 1, body))
        with pytest.raises(OpError) as caught:
            given(running, text="more")
        assert caught.value.code == "not_ended"
        assert way in caught.value.hint


@any_of(st.lists(st.sampled_from(["said", "ended", "continued"]), min_size=1, max_size=12))
def test_words_behind_an_end_are_known_to_be_unread_and_no_others(course: list[str]) -> None:
    bodies = {
        "said": t.UserMessage(text="and the docs", origin="human"),
        "ended": t.SessionEnded(outcome="done"),
        "continued": t.SessionContinued(),
    }
    state = fold([record(seq, bodies[what]) for seq, what in enumerate(course)])
    since = course[::-1].index("continued") if "continued" in course else len(course)
    lived = course[len(course) - since :]
    for seq, what in enumerate(course):
        if what == "said":
            last_end = max((at for at, other in enumerate(course) if other == "ended"), default=-1)
            assert state.unread(seq) == ("ended" in lived and last_end < seq)
