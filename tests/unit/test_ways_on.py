"""No session stands for good: whatever it waits for, there is something that a person can press, and that gets it on.

The tables of states, reasons, requests, decisions and troubles drive these tests: a new one without a way on fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from app.action_table import registry
from app.cli.grammar import parser
from app.screens.session_commands import not_resuming
from harness.agents.supervisor_requests import AttemptOutcome
from harness.domain import problems
from harness.domain.calls.approval_kind import RESUMED, Request
from harness.domain.calls.attempt import AT_THE_GATE, NEEDS_PERSON, NO_REPLY, OVERFLOWS, REFUSED, WAITS, AttemptKind
from harness.domain.calls.call_states import CallStage
from harness.domain.decision import Decision
from harness.domain.endpoints import ITEM_KINDS
from harness.domain.problems import FLEET, PARKED, REQUESTS, SESSION, Trouble, Words
from harness.domain.states import OVER, Desired, ParkedFor, State
from harness.events import types as t
from harness.events.calls.call_events import BEFORE_WORK
from harness.projections.state.row_state import Liveness
from harness.projections.state.session_state import OpenApproval
from harness.supervisor.calls.consequences import Consequences, DecisionCase, DecisionRequest
from harness.supervisor.endpoints import endpoint_gate as g
from harness.supervisor.fleet.next_step import BLOCKING, Ask, Nothing, Wake
from harness.supervisor.sessions import continuing
from harness.views.attention import held
from harness.views.rows import row
from harness.views.session_views import ERRORS, troubled
from tests.unit.test_due import CREATED, INTENT, Log, parked

REPLIED = t.ModelMessage(
    request_id="r", message_id="m", model="m", stop="calls", usage=t.Usage(input=9, output=9), cost_nano=1, parts=[]
)
BY_ITSELF = {ParkedFor.LIMITED, ParkedFor.JOB}
"""What these wait for comes without anybody."""
MADE_BEFORE = {ParkedFor.APPROVAL: Request.TOOL, ParkedFor.CAP: Request.CAP, ParkedFor.AUTH: Request.AUTH}
"""Their request is made before the park, where the call, the cap or the key is met."""
RESUMES = {ParkedFor.PAUSED}
WORDLESS = set(Decision) - {Decision.ALLOW_EDITED, Decision.RAISE}
COMMANDS = " ".join(parser.build().format_help().split())


def log(*more: t.Body) -> Log:
    return Log(INTENT, CREATED, REPLIED, *more)


def pressable(words: Words, *, outside: bool = False) -> None:
    """These words say what to do, and there is a key or a command for it that exists; ``outside``: it may be something
    that no key of ours does.
    """
    assert words.do
    assert words.action in registry.BY_ID or words.command or outside
    if words.command:
        assert f" {words.command.split()[1]} " in f" {COMMANDS} "


def decided(made: Log, asked: OpenApproval, decision: str) -> None:
    """The supervisor takes this decision, and what follows from it is on record."""
    wish = DecisionRequest(approval_id=asked.approval_id, decision=decision, message="do it so")
    record = t.ApprovalDecided(approval_id=asked.approval_id, decision_id="d", decision=decision)
    session = cast(Any, SimpleNamespace(state=made.state, track=made.track))
    nobody = cast(Any, None)
    case = DecisionCase(session, asked, wish, record)
    made.put(record, *asyncio.run(Consequences(nobody, nobody, nobody).of(case)))


def gets_on(made: Log, decision: str) -> None:
    """After this decision somebody thinks, or it is over as the person wanted."""
    s = made.state
    if decision in (Decision.STOP, Decision.DONE):
        assert s.desired == Desired.STOPPED or s.ended is not None
        return
    assert made.due() == Wake(), decision


@pytest.mark.parametrize("why", ParkedFor)
def test_every_reason_to_wait_ends_by_itself_or_by_what_a_person_presses(why: ParkedFor) -> None:
    made = log(*parked(why))
    due = made.due()
    if why in BY_ITSELF | RESUMES or why in MADE_BEFORE:
        assert isinstance(due, Wake), "nobody asks, and nothing holds it: its gate, its job or its request wakes it"
        if why in MADE_BEFORE:
            assert MADE_BEFORE[why] in REQUESTS
        if why not in BY_ITSELF:
            pressable(PARKED[why])
        return
    assert isinstance(due, Ask), "a request says what to do"
    assert due.options
    assert due.kind in BLOCKING | ITEM_KINDS
    pressable(PARKED[why])
    for decision in due.options:
        one = log(*parked(why))
        one.put(t.ApprovalRequested(approval_id="a", kind=due.kind, title="?", options=list(due.options)))
        assert one.due() == Nothing(), "it is asked once"
        decided(one, one.state.approvals["a"], decision)
        gets_on(one, decision)


@pytest.mark.parametrize("kind", sorted(RESUMED))
def test_resuming_gets_on_too_where_retry_does(kind: str) -> None:
    why = next(why for why in ParkedFor if isinstance(due := log(*parked(why)).due(), Ask) and due.kind == kind)
    one = log(*parked(why))
    one.put(t.ApprovalRequested(approval_id="a", kind=kind, title="?", options=["retry", "stop"]))
    one.put(t.SessionDesired(state="running"), t.ApprovalWithdrawn(approval_id="a", why="you resumed the session"))
    assert one.due() == Wake()


@pytest.mark.parametrize("kind", Request)
def test_every_kind_of_request_has_words_and_a_way_on(kind: Request) -> None:
    assert REQUESTS[kind]
    words = problems.requested(kind)
    assert words.person
    pressable(words)


KEYS: dict[str, tuple[str, ...]] = {
    Decision.ALLOW: ("queue.approve",),
    Decision.ALLOW_EDITED: ("queue.edit",),
    Decision.DENY: ("queue.deny",),
    Decision.ANSWER: ("queue.answer",),
    Decision.RAISE: ("queue.raise",),
    Decision.FINISH: ("queue.finish",),
    Decision.RETRY: ("queue.approve",),
    Decision.FRESH: ("queue.fresh",),
    Decision.BELIEVE: ("queue.believe",),
    Decision.STOP: ("queue.stop",),
    Decision.DONE: ("queue.done", "queue.accept"),
    Decision.FAILED: ("queue.failed",),
    Decision.UNKNOWN: ("queue.unknown",),
}


def test_every_decision_has_its_key() -> None:
    assert KEYS.keys() == set(Decision)
    assert {key for keys in KEYS.values() for key in keys} <= registry.BY_ID.keys()


@pytest.mark.parametrize("kind", AttemptKind)
def test_everything_that_an_attempt_comes_to_has_what_follows(kind: AttemptKind) -> None:
    """It waits at the gate, asks there, is told to the model, makes room, begins anew, or parks with its words."""
    if kind in (AttemptKind.OK, AttemptKind.ANSWERED):
        return
    kinds = WAITS | NEEDS_PERSON | NO_REPLY | OVERFLOWS | REFUSED | {AttemptKind.SETTING}
    assert kind in kinds
    if kind not in AT_THE_GATE:
        return
    gate = g.Gate()
    assert isinstance(gate.may("a", 0.0), g.Go)
    gate.sent("a", 0.0)
    gate.told("a", AttemptOutcome(kind, "why"), 0.0, 0.5)
    gate.may("a", 0.0)
    if gate.due(0.0) is None:
        gate.answered(0.0)  # a person pressed retry
    assert gate.due(0.0) is not None or gate.wake(0.0)


@pytest.mark.parametrize("kind", SESSION)
def test_every_trouble_ends_by_itself_or_says_what_to_press(kind: str) -> None:
    words = SESSION[kind]
    assert words.next
    if not (words.person or words.mend):
        return
    pressable(words, outside=True)
    plain = row("s1", log().state, Liveness(True, True))
    shown = troubled(plain, Trouble(kind, "why"), held=words.person)
    if words.person:
        assert shown.group == ERRORS
        item = held(shown)
        assert item is not None, "it stands in the queue"
        assert item.detail["do"]


@pytest.mark.parametrize("kind", FLEET)
def test_every_trouble_of_the_fleet_ends_by_itself_or_says_what_to_do(kind: str) -> None:
    words = FLEET[kind]
    assert words.next
    assert words.do or not words.person


ENDS: dict[str, Callable[[], t.Body]] = {
    State.DONE: lambda: t.SessionEnded(outcome=State.DONE),
    State.FAILED: lambda: t.SessionEnded(outcome=State.FAILED, reason="checks fail"),
    State.STOPPED: lambda: t.SessionEnded(outcome=State.STOPPED),
}


@pytest.mark.parametrize("outcome", sorted(OVER))
@pytest.mark.parametrize("wish", [{"text": "go on"}, {"fresh": True}], ids=["words", "fresh"])
def test_every_end_can_be_lifted(outcome: str, wish: dict[str, Any]) -> None:
    made = log(ENDS[outcome]())
    assert made.due() == Nothing()
    made.put(*continuing.records("s1", made.state, continuing.parse(wish), t.Caps(), t.By()))
    assert made.due() == Wake()
    assert made.state.context.fresh == bool(wish.get("fresh"))


@pytest.mark.parametrize("why", [None, *ParkedFor])
def test_a_session_that_has_not_ended_begins_anew_wherever_it_stands(why: ParkedFor | None) -> None:
    made = log(*(parked(why) if why is not None else ()))
    if isinstance(due := made.due(), Ask):
        made.put(t.ApprovalRequested(approval_id="a", kind=due.kind, title="?", options=list(due.options)))
    made.put(*continuing.records("s1", made.state, continuing.parse({"fresh": True}), t.Caps(), t.By()))
    assert made.state.context.fresh
    assert made.state.desired == Desired.RUNNING
    asks = {a.kind for a in made.state.approvals.values()}
    assert made.due() == Wake() or asks - RESUMED, "what else it asks stays asked"


STATES: dict[str, tuple[t.Body, ...]] = {
    State.STARTING: (),
    State.RUNNING: (),
    State.WAITING: (t.ApprovalRequested(approval_id="a", kind="question", title="?", options=["answer", "stop"]),),
    State.PARKED: (t.SessionDesired(state="paused"),),
    State.LIMITED: parked("limited"),
    State.LOST: (),
    State.DONE: (t.SessionEnded(outcome="done"),),
    State.FAILED: (t.Quarantined(part="brain", reason="it died", restarts=3),),
    State.STOPPED: (t.SessionEnded(outcome="stopped"),),
    State.UNKNOWN: (),
}


@pytest.mark.parametrize("state", State)
def test_every_state_of_a_row_has_a_way_on(state: State) -> None:
    """It works, it comes back by itself, it asks, or it names what helps: resume, continue."""
    made = log(*STATES[state])
    if state in (State.STARTING, State.RUNNING, State.LIMITED, State.LOST, State.UNKNOWN):
        assert made.due() == Wake()
    elif state == State.WAITING:
        decided(made, made.state.approvals["a"], Decision.ANSWER)
        assert made.due() == Wake()
    elif state in (State.PARKED, State.FAILED):
        made.put(t.SessionDesired(state="running"))
        assert made.due() == Wake()
    else:
        made.put(*continuing.records("s1", made.state, continuing.parse({"text": "on"}), t.Caps(), t.By()))
        assert made.due() == Wake()


IN_DOUBT = {Decision.DONE: "confirmed_done", Decision.FAILED: "failed", Decision.UNKNOWN: "unknown_told_model"}


@pytest.mark.parametrize("decision", sorted(IN_DOUBT))
def test_a_call_in_doubt_is_settled_by_a_word(decision: str) -> None:
    made = log(
        t.ToolProposed(call_id="c3.0", tool="exec", ref="toolu_1", input={"argv": ["true"]}),
        t.ToolStarted(call_id="c3.0", action_hash="h", effect="external"),
        t.ToolInDoubt(call_id="c3.0", why="the machine was off"),
        t.ApprovalRequested(
            approval_id="a", kind="in_doubt", title="?", options=list(IN_DOUBT), call_id="c3.0", action_hash="h"
        ),
    )
    assert made.state.calls.open["c3.0"].stage == CallStage.IN_DOUBT
    assert made.due() == Nothing()
    decided(made, made.state.approvals["a"], decision)
    assert made.due() == Wake()


def test_one_that_runs_its_checks_first_is_let_go_on_by_the_key_that_resumes() -> None:
    made = log(
        t.ToolProposed(call_id="c3.0", tool="check", ref=BEFORE_WORK, input={"command": "make test"}),
        t.ToolStarted(call_id="c3.0", action_hash="h", effect="sandbox"),
    )
    shown = row("s1", made.state, Liveness(True, True))
    assert (shown.state, shown.detail) == (State.RUNNING, "runs its checks before the work: make test")
    pressable(problems.CHECKS_FIRST)
    assert (shown.action, not_resuming(shown)) == ("session.resume", "")
    assert made.due() == Nothing()
    made.put(t.ChecksSkipped(commands=["make test", "make lint"]))
    made.put(t.ToolEnded(call_id="c3.0", status="cancelled"))
    assert made.state.before.lacking(["make test", "make lint"]) == [], "it is not begun again"
    assert {c.passed for c in made.state.before.results.values()} == {None}
