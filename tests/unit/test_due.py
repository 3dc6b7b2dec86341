"""What is due next for a session's thinking: parks end in their request and are answered before anybody wakes a brain,
whatever happened.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.calls.approval_kind import CAME_OF_IT, LAST_CALL
from harness.events import types as t
from harness.projections.apply import advance
from harness.projections.state.session_state import SessionState
from harness.supervisor.fleet.call_records import Track
from harness.supervisor.fleet.next_step import Ask, Due, Falls, Nothing, Wake, due

TS = "2026-01-02T03:04:05.000Z"
INTENT = t.SessionIntent(name="n", goal="g", repo="/r", branch="b", worktree="/w", model="m")
CREATED = t.SessionCreated(base="0" * 40, worktree="/w", branch="b")
CAP = t.ApprovalRequested(approval_id="a1", kind="cap", title="cap", options=["raise"])
PROPOSED = t.ToolProposed(call_id="c2.0", tool="exec", ref="toolu_1", input={"argv": ["true"]})
GRANTED = t.LeaseGranted(gen=1, epoch=1)
LEFT = t.LeaseEnded(gen=1, reason="exited")


class Log:
    """A log in memory with what the supervisor folds of it."""

    def __init__(self, *bodies: t.Body) -> None:
        self.state = SessionState()
        self.track = Track()
        self.records: list[t.Record] = []
        self.put(*bodies)

    def put(self, *bodies: t.Body) -> Log:
        for body in bodies:
            record = t.Record(len(self.records), TS, "test", self.state.lease_gen, body)
            self.records.append(record)
            self.track.note(self.state, record)
            advance(self.state, record)
        return self

    def due(self) -> Due:
        return due(self.state, self.track)


def after(*more: t.Body) -> Due:
    return Log(INTENT, CREATED, *more).due()


def parked(why: str, until: str = "") -> tuple[t.Body, ...]:
    return GRANTED, t.SessionParked(why=why, detail="why it is", until=until), LEFT


# -- waking ----------------------------------------------------------------------------------------


def test_a_new_session_needs_a_brain_once_its_worktree_stands() -> None:
    assert Log(INTENT).due() == Nothing()
    assert after() == Wake()


@pytest.mark.parametrize(
    "more",
    [
        (t.SessionDesired(state="paused"),),
        (t.SessionDesired(state="stopped"),),
        (t.SessionDesired(state="stopped"), t.SessionDesired(state="running")),
        (t.SessionEnded(outcome="done"),),
        (t.Quarantined(part="brain", reason="r", restarts=3),),
        (GRANTED,),
        (CAP,),
        (PROPOSED,),
    ],
)
def test_nobody_thinks_when_there_is_nothing_to_think_about(more: tuple[t.Body, ...]) -> None:
    assert after(*more) == Nothing()


@pytest.mark.parametrize(
    "more",
    [
        (CAP, t.ApprovalDecided(approval_id="a1", decision_id="d1", decision="raise")),
        (PROPOSED, t.ToolEnded(call_id="c2.0", status="denied")),
        (t.Quarantined(part="brain", reason="r", restarts=3), t.SessionDesired(state="running")),
        (t.ApprovalRequested(approval_id="a2", kind="tool", title="x", options=["allow"], call_id="gone"),),
        parked("limited", "2026-01-02T03:04:04.000Z"),
        parked("limited", "no time"),
        (*parked("limited", "2099-01-01T00:00:00.000Z"), t.SessionDesired(state="running")),
        parked("approval"),
        parked("paused"),
        (*parked("error"), t.SessionDesired(state="running")),
    ],
)
def test_what_wakes(more: tuple[t.Body, ...]) -> None:
    assert after(*more) == Wake()


def test_no_park_of_an_older_version_waits_until_2099() -> None:
    """When to ask again is for the endpoint's gate to say, and it obeys no wait for ever."""
    assert after(*parked("limited", "2099-01-01T00:00:00Z")) == Wake()


def test_a_session_that_waits_for_a_job_is_woken_by_its_end_or_by_words_and_by_nothing_else() -> None:
    started = t.JobStarted(clock=0.0, job="j1", call_id="c1.0", what="make")
    waiting = (started, *parked("job"))
    assert after(*waiting) == Nothing()
    assert after(*waiting, t.TimePassed(seconds=7 * 86_400)) == Nothing()
    assert after(*waiting, t.JobEnded(job="j1", status="ok")) == Wake()
    assert after(*waiting, t.UserMessage(text="how is it?")) == Wake()
    assert after(started, t.UserMessage(text="before"), *parked("job")) == Nothing()


# -- parks -----------------------------------------------------------------------------------------


def test_the_question_about_circles_says_the_call_and_what_came_of_it() -> None:
    detail = "the same call (5 in a row)\npytest -q\nexit 4: no such file"
    asked = Log(INTENT, CREATED, GRANTED, t.SessionParked(why="breaker", detail=detail)).due()
    assert isinstance(asked, Ask)
    assert asked.title == "the same call (5 in a row)"
    assert asked.detail == {LAST_CALL: "pytest -q", CAME_OF_IT: "exit 4: no such file"}


@pytest.mark.parametrize(
    ("why", "kind"),
    [("breaker", "question"), ("refusal", "refusal"), ("error", "restart"), ("something newer", "restart")],
)
def test_a_park_ends_in_its_request_and_holds_until_that_is_answered(why: str, kind: str) -> None:
    log = Log(INTENT, CREATED, GRANTED, t.SessionParked(why=why, detail="why it is"))
    asked = log.due()
    assert isinstance(asked, Ask), "at once, whether or not its brain has left"
    assert asked.kind == kind
    assert "why it is" in asked.title
    assert log.put(LEFT).due() == asked, "a brain that has left changes nothing"
    assert log.put(t.SessionDesired(state="paused")).due() == Nothing()
    if kind != "restart":
        assert log.put(t.SessionDesired(state="running")).due() == asked
    request = t.ApprovalRequested(approval_id="a9", kind=kind, title="t", options=["retry"])
    assert log.put(request).due() == Nothing()
    assert log.put(t.SessionDesired(state="running")).due() == Nothing()
    assert log.put(t.ApprovalDecided(approval_id="a9", decision_id="d", decision="retry")).due() == Wake()
    again = log.put(
        t.LeaseGranted(gen=2, epoch=1), t.SessionParked(why=why, detail="why it is"), t.LeaseEnded(gen=2, reason="x")
    ).due()
    assert again == asked, "the next park is a question of its own"


@pytest.mark.parametrize(
    ("why", "kind"), [("question", "question"), ("breaker", "question"), ("refusal", "refusal"), ("error", "restart")]
)
def test_a_park_that_finds_its_own_question_open_is_asked_about(why: str, kind: str) -> None:
    request = t.ApprovalRequested(approval_id="a9", kind=kind, title="t", options=["retry"])
    parks = t.SessionParked(why=why, detail="why it is")
    log = Log(INTENT, CREATED, GRANTED, parks, request, parks, parks)
    assert log.due() == Nothing()
    log.put(t.ApprovalDecided(approval_id="a9", decision_id="d", decision="retry"), LEFT)
    assert log.due() == Wake(), "one answer is enough"
    log.put(t.LeaseGranted(gen=2, epoch=1), parks)
    assert isinstance(log.due(), Ask), "what comes after the answer is a question of its own"


def test_a_park_beside_the_question_of_another_is_asked_about() -> None:
    request = t.ApprovalRequested(approval_id="a9", kind="refusal", title="t", options=["retry"])
    log = Log(INTENT, CREATED, GRANTED, t.SessionParked(why="refusal"), request, t.SessionParked(why="error"))
    asked = log.due()
    assert isinstance(asked, Ask)
    assert asked.kind == "restart"


def test_a_refusal_can_be_answered_with_words() -> None:
    asked = after(GRANTED, t.SessionParked(why="refusal", detail="I will not.\nNot ever."))
    assert asked == Ask("refusal", "I will not.", {"asks": "I will not.\nNot ever."}, ("answer", "retry", "stop"))


BODIES = st.sampled_from(
    [
        t.SessionParked(why="breaker"),
        t.SessionParked(why="error"),
        t.SessionParked(why="refusal"),
        t.SessionParked(why="auth"),
        t.SessionParked(why="cap"),
        t.SessionParked(why="limited", until="2026-01-02T04:00:00Z"),
        CAP,
        PROPOSED,
        t.ToolEnded(call_id="c2.0", status="ok"),
        t.SessionDesired(state="running"),
        t.SessionDesired(state="paused"),
        t.SessionDesired(state="stopped"),
        t.UserMessage(text="hm", origin="human"),
        t.Quarantined(part="brain", reason="r", restarts=3),
        t.KeeperStarted(pid=1, start=1, boot="b"),
    ]
)
STEPS = st.one_of(
    BODIES, st.sampled_from(["brain leaves", "brain is killed", "answer", "supervisor acts", "supervisor acts"])
)


@given(st.lists(STEPS, max_size=60))
def test_no_brain_between_a_park_and_its_answer(steps: list[t.Body | str]) -> None:
    """A supervisor that looks now and then, brains that die whenever they like, people who answer or wish: whatever the
    order.
    """
    log = Log(INTENT, CREATED)
    number = 0
    waits = ""
    for step in steps:
        s = log.state
        if isinstance(step, t.Body):
            if isinstance(step, t.SessionParked):
                if s.lease is None:
                    continue  # only a brain parks
                waits = {"breaker": "question", "refusal": "refusal", "error": "restart"}.get(step.why, "")
            if isinstance(step, t.ApprovalRequested) and step.approval_id in s.approvals:
                continue
            log.put(step)
            if (
                isinstance(step, t.SessionDesired)
                and step.state == "running"
                and s.desired != "stopped"
                and waits == "restart"
            ):
                waits = waits if any(a.kind == "restart" for a in s.approvals.values()) else ""
        elif step.startswith("brain"):
            log.put(t.LeaseEnded(gen=s.lease_gen, reason=step))
        elif step == "answer":
            for open_one in list(s.approvals.values()):
                log.put(t.ApprovalDecided(approval_id=open_one.approval_id, decision_id="d", decision="retry"))
                waits = "" if open_one.kind == waits else waits
        else:
            match log.due():
                case Ask() as asked:
                    assert asked.kind == waits, "only the park that holds is asked about"
                    number += 1
                    log.put(
                        t.ApprovalRequested(approval_id=f"n{number}", kind=asked.kind, title="t", options=["retry"])
                    )
                    assert not isinstance(log.due(), Ask), "and once"
                case Wake():
                    assert not waits, "nobody thinks before the answer"
                    assert (s.lease, s.desired, s.ended, s.quarantined) == (None, "running", None, None)
                    assert not s.calls.open
                    log.put(t.LeaseGranted(gen=s.lease_gen + 1, epoch=1))
                case _:
                    pass


@given(st.lists(st.sampled_from(["running", "paused", "stopped"]), max_size=12))
def test_a_stop_is_final_in_the_fold(states: list[str]) -> None:
    log = Log(INTENT, CREATED, *(t.SessionDesired(state=state, reason=f"{i}") for i, state in enumerate(states)))
    assert log.state.desired == ("stopped" if "stopped" in states else (states or ["running"])[-1])


# -- brains that die -------------------------------------------------------------------------------


def test_what_costs_nothing_is_tried_for_ever_with_growing_pauses() -> None:
    falls = Falls()
    pauses = []
    for _ in range(50):
        falls.add(worked=False, paid=False)
        pauses.append(falls.pause_s)
    assert pauses[:5] == pytest.approx([0.2, 0.8, 3.2, 12.8, 51.2])
    assert pauses == sorted(pauses)
    assert pauses[-1] == 300.0
    assert falls.lasting
    assert not falls.too_dear


def test_only_lost_replies_in_a_row_end_in_a_question() -> None:
    falls = Falls()
    for _ in range(5):
        falls.add(worked=False, paid=True)
        assert not falls.too_dear
    falls.add(worked=True, paid=True)
    assert (falls.count, falls.paid, falls.too_dear) == (1, 1, False), "a brain that did something begins anew"
    for _ in range(5):
        falls.add(worked=False, paid=True)
    assert falls.too_dear
