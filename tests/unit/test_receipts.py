"""What became of requests: each way that one can go has its steps and its outcome."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.events import types as t
from harness.reports.receipts import DECIDED, EFFECT, LOST, OPEN, STALE, TAKEN, WITHDRAWN, History, Receipt, receipts

NAME = "a2222222"
CALL = "c1.0"


def asked(kind: str = "tool", call_id: str = CALL, name: str = NAME) -> t.ApprovalRequested:
    return t.ApprovalRequested(approval_id=name, kind=kind, title="git push", options=["allow"], call_id=call_id)


def decided(decision: str = "allow", name: str = NAME) -> t.ApprovalDecided:
    return t.ApprovalDecided(
        approval_id=name, decision_id="d", decision=decision, shown_hash="f" * 64, by=t.By(client="tui")
    )


def asks(*delivers: str, purpose: str = "") -> t.ModelRequest:
    return t.ModelRequest(
        request_id="r",
        attempt=1,
        model="opus",
        reservation="",
        reserved_nano=0,
        est_input=0,
        max_tokens=1,
        upto_seq=0,
        delivers=list(delivers),
        purpose=purpose,
    )


def said(purpose: str = "") -> t.ModelMessage:
    return t.ModelMessage(
        request_id="r", message_id="m", model="opus", stop="done", usage=t.Usage(), cost_nano=0, purpose=purpose
    )


STARTED = t.ToolStarted(call_id=CALL, action_hash="", effect="irreversible", decision_id="d")
ENDED = t.ToolEnded(call_id=CALL, status="ok")
DENIED = t.ToolEnded(call_id=CALL, status="denied")
DOUBT = t.ToolInDoubt(call_id=CALL, why="killed")
STOPPED = t.SessionDesired(state="stopped")
OVER = t.SessionEnded(outcome="stopped")
GONE = t.ApprovalWithdrawn(approval_id=NAME, why="the session has ended")
OTHER = t.ApprovalStale(approval_id=NAME, call_id=CALL, difference=["head"])


def log(*bodies: t.Body) -> list[t.Record]:
    return [t.Record(seq, f"2026-11-22T12:00:{seq:02d}.000Z", "x", 0, body) for seq, body in enumerate(bodies)]


def follow(records: list[t.Record], made: History | None = None) -> History:
    made = made or History()
    for record in records:
        made.take(record)
    return made


def one(*bodies: t.Body) -> Receipt:
    (made,) = receipts(follow(log(*bodies)))
    return made


def steps(made: Receipt) -> str:
    return " ".join(f"{step.stage}#{step.seq}" for step in made.steps)


def test_a_push_from_question_to_effect() -> None:
    made = one(asked(), decided(), STARTED, ENDED, asks(), asks(CALL, purpose="judge"), asks(CALL), said())
    assert steps(made) == "asked#0 shown#1 decided#1 taken#2 effect#3 delivered#6"
    assert (made.outcome, made.decision, made.by) == (EFFECT, "allow", "tui")


@pytest.mark.parametrize(
    ("bodies", "outcome", "way"),
    [
        ((asked(),), OPEN, "asked#0"),
        ((asked(), t.ApprovalDeferred(approval_id=NAME)), OPEN, "asked#0 deferred#1"),
        ((asked(), decided()), DECIDED, "asked#0 shown#1 decided#1"),
        ((asked(), decided(), STARTED), TAKEN, "asked#0 shown#1 decided#1 taken#2"),
        ((asked(), decided("deny"), DENIED, asks(CALL)), EFFECT, "asked#0 shown#1 decided#1 effect#2 delivered#3"),
        ((asked(), OTHER, decided()), STALE, "asked#0 stale#1"),
        ((asked(), decided(), OTHER), STALE, "asked#0 shown#1 decided#1 stale#2"),
        ((asked(), OVER), LOST, "asked#0 lost#1"),
        ((asked(), OVER, GONE), WITHDRAWN, "asked#0 withdrawn#2"),
        ((asked(), decided(), OVER), LOST, "asked#0 shown#1 decided#1 lost#2"),
        ((asked(), decided(), STARTED, DOUBT), LOST, "asked#0 shown#1 decided#1 taken#2 lost#3"),
        ((asked(), decided("stop"), STOPPED, OVER), EFFECT, "asked#0 shown#1 decided#1 taken#2 effect#3"),
        (
            (asked("question", ""), decided("answer"), t.UserMessage(text="blue"), asks(), said()),
            EFFECT,
            "asked#0 shown#1 decided#1 taken#2 delivered#3 effect#4",
        ),
        (
            (asked("cap", ""), decided("raise"), t.CapsRaised(caps=t.Caps()), asks(purpose="judge"), said("judge")),
            TAKEN,
            "asked#0 shown#1 decided#1 taken#2",
        ),
        ((asked("question", ""), decided("done"), OVER), EFFECT, "asked#0 shown#1 decided#1 taken#2 effect#2"),
        (
            (asked("in_doubt"), decided("done"), t.ToolResolved(call_id=CALL, resolution="confirmed_done")),
            TAKEN,
            "asked#0 shown#1 decided#1 taken#2",
        ),
    ],
)
def test_each_way_that_a_request_can_go(bodies: tuple[t.Body, ...], outcome: str, way: str) -> None:
    made = one(*bodies)
    assert (made.outcome, steps(made)) == (outcome, way)


def test_a_decision_takes_only_what_it_ordered_itself() -> None:
    apart = one(asked("cap", ""), decided("raise"), t.HarnessNote(level="info", text=""), t.CapsRaised(caps=t.Caps()))
    assert apart.outcome == DECIDED
    late = one(asked(), decided(), decided("deny"))
    assert late.decision == "allow", "used once"
    nobody = receipts(follow(log(decided(), STARTED, ENDED, GONE, OTHER, OVER)))
    assert nobody == []


BODIES: list[t.Body] = [
    asked(),
    asked("question", "", "a3333333"),
    decided(),
    decided("answer", "a3333333"),
    t.UserMessage(text="blue"),
    STARTED,
    ENDED,
    DENIED,
    DOUBT,
    STOPPED,
    OVER,
    GONE,
    OTHER,
    asks(),
    asks(CALL),
    said(),
    t.ApprovalDeferred(approval_id=NAME),
    t.Unknown(type="?", data={}),
]


@given(st.lists(st.sampled_from(BODIES), max_size=59), st.lists(st.integers(0, 60), max_size=4))
def test_however_a_log_is_cut_it_tells_the_same(bodies: list[t.Body], cuts: list[int]) -> None:
    records = log(*bodies)
    whole = receipts(follow(records))
    made = History()
    at = 0
    for cut in [*sorted(cuts), len(records)]:
        made = follow(records[at:cut], made)
        at = max(at, cut)
    assert receipts(made) == whole
    for r in whole:
        seqs = [step.seq for step in r.steps]
        assert seqs == sorted(seqs), "in the order of the log"
        assert r.steps[0].stage == "asked"
        stages = [step.stage for step in r.steps if step.stage != "deferred"]
        assert len(stages) == len(set(stages))
        assert (TAKEN not in stages) or (DECIDED in stages), "nothing is taken that nobody decided"
