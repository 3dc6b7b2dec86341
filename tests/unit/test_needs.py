"""Floor and queue say the same: a session is among those that need somebody exactly when the queue has its item, and
the item says what to do.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain import problems
from harness.domain.calls.approval_kind import Request
from harness.domain.problems import FAILED, HELD, PARKED, SESSION, Trouble
from harness.events import types as t
from harness.projections.apply import SessionState, fold
from harness.projections.state.row_state import Liveness
from harness.views import attention
from harness.views.rows import row
from harness.views.session_views import (
    ERRORS,
    GROUPS,
    NEEDS_YOU,
    RUNNING,
    ApprovalView,
    FleetView,
    SessionRow,
    counted,
    reminded,
    standing,
    troubled,
)
from widgets.card.card_text import card_lines
from widgets.queue.queue_head import by_weight

BEGIN: tuple[t.Body, ...] = (
    t.SessionIntent(name="cart", repo="/r", branch="b", worktree="/w", goal="g", model="m"),
    t.SessionCreated(worktree="/w", branch="b", base="0" * 40),
)


def records(*bodies: t.Body) -> list[t.Record]:
    return [t.Record(n, "2026-01-01T00:00:00.000Z", "supervisor", 0, body) for n, body in enumerate(bodies)]


def asks(kind: str, at: int) -> t.ApprovalRequested:
    return t.ApprovalRequested(approval_id=f"a{at}", kind=kind, title="may I?", options=["answer", "stop"])


STEPS = st.one_of(
    st.sampled_from(sorted(PARKED)).map(lambda why: t.SessionParked(why=why, detail="because")),
    st.sampled_from(sorted(Request)).map(lambda kind: asks(kind, 1)),
    st.sampled_from(sorted(Request)).map(lambda kind: asks(kind, 2)),
    st.sampled_from(["a1", "a2"]).map(lambda one: t.ApprovalWithdrawn(approval_id=one, why="gone")),
    st.sampled_from(["a1", "a2"]).map(lambda one: t.ApprovalDeferred(approval_id=one)),
    st.sampled_from(["paused", "running", "stopped"]).map(lambda state: t.SessionDesired(state=state, by=t.By())),
    st.sampled_from(["done", "failed", "stopped"]).map(lambda how: t.SessionEnded(outcome=how, reason="so it is")),
    st.just(t.Quarantined(part="brain", restarts=3, reason="it dies")),
    st.just(t.AlarmSnoozed(alarms=[HELD], until="2026-01-01T01:00:00.000Z")),
)
LIVES = st.builds(Liveness, keeper=st.sampled_from([True, False, None]), brain=st.sampled_from([True, False, None]))


def shown(s: SessionState) -> list[ApprovalView]:
    """The open requests as the supervisor lists them."""
    if s.terminal or s.desired == "stopped":
        return []
    return [
        ApprovalView(a.approval_id, "s", "cart", a.kind, a.title, a.options, a.risk, a.ts, a.seq, deferred=a.deferred)
        for a in s.approvals.values()
    ]


@given(st.lists(STEPS, max_size=6), LIVES, st.none() | st.tuples(st.sampled_from(sorted(SESSION)), st.booleans()))
def test_a_session_needs_somebody_exactly_when_the_queue_has_its_item(
    steps: list[t.Body], live: Liveness, told: tuple[str, bool] | None
) -> None:
    s = fold(records(*BEGIN, *steps))
    made = row("s", s, live)
    if told is not None and not s.terminal:
        made = troubled(made, Trouble(told[0], "the cause"), held=told[1])
    found = attention.items([made], shown(s))
    assert bool(found) == (made.group in (NEEDS_YOU, ERRORS))
    if made.group == NEEDS_YOU:
        assert {item.approval_id for item in found} == set(made.approvals)
    for item in found:
        words = item.detail.get(attention.DO) if item.kind == HELD else problems.requested(item.kind).do
        assert words


@given(st.lists(st.sampled_from(["needs you", "errors", "running", "to review", "done"]), max_size=30))
def test_every_session_has_one_item_and_every_item_its_session(groups: list[str]) -> None:
    rows = [
        SessionRow(f"s{i}", f"n{i}", "failed", group, "x", f"2026-01-01T00:00:{i:02}Z")
        for i, group in enumerate(groups)
    ]
    requests = [
        ApprovalView(f"a{r.sid}", r.sid, r.name, Request.TOOL, "x", ["allow"], "low", r.since, 1)
        for r in rows
        if r.group == NEEDS_YOU
    ]
    found = attention.items(rows, requests)
    assert sorted(item.sid for item in found) == sorted(r.sid for r in rows if r.group in (NEEDS_YOU, ERRORS))
    assert len({item.approval_id for item in found}) == len(found)
    order = [item.kind == HELD for item in by_weight(found, 1e12)]
    assert order == sorted(order), "what asks nothing comes last"
    for item in found:
        assert attention.session_of(item.approval_id) == (item.sid if item.kind == HELD else "")


@pytest.mark.parametrize("outcome", ["failed"])
def test_a_failed_session_says_what_can_be_done(outcome: str) -> None:
    s = fold(records(*BEGIN, t.SessionEnded(outcome=outcome, reason="2 of 3 checks fail: \x1b[31mpytest")))
    (item,) = attention.items([row("s", s, Liveness(keeper=True, brain=False))], ())
    assert item.detail[attention.DO] == FAILED.do
    assert item.detail[attention.COMMAND] == "watchfloor continue s TEXT"
    assert item.options == [], "nothing is decided here"
    text = "\n".join(line.text for line in card_lines(item))
    assert "\x1b" not in text
    assert "2 of 3 checks fail" in text
    assert "RISK" not in text


@given(st.lists(STEPS, max_size=6), LIVES, st.sampled_from([0.0, 3599.0, 3601.0]))
def test_what_was_put_off_waits_behind_the_rest_until_its_time(
    steps: list[t.Body], live: Liveness, later: float
) -> None:
    begin = 1_767_225_600.0  # of the records
    s = fold(records(*BEGIN, *steps, t.AlarmSnoozed(alarms=[HELD], until="2026-01-01T01:00:00.000Z")))
    made = reminded(row("s", s, live, now=begin + later), begin + later)
    other = SessionRow("z", "other", "failed", ERRORS, "x", "2026-01-01T09:00:00Z")
    found = attention.items([made, other], shown(s))
    assert bool([item for item in found if item.sid == "s"]) == (made.group in (NEEDS_YOU, ERRORS)), "it stays"
    mine = next((item for item in found if item.kind == HELD and item.sid == "s"), None)
    if mine is not None:
        assert (mine.deferred is not None) == (later < 3600)
        order = [item.sid for item in by_weight(found, begin) if item.kind == HELD]
        assert order == (["z", "s"] if later < 3600 else ["s", "z"])


def test_another_failure_is_not_put_off() -> None:
    put_off = t.AlarmSnoozed(alarms=[HELD], until="2026-01-01T01:00:00.000Z")
    failed = t.SessionEnded(outcome="failed", reason="so it is")
    for again in (
        [t.SessionContinued(caps=t.Caps())],
        [t.SessionContinued(caps=t.Caps()), failed],
        [t.Quarantined(part="brain", restarts=3, reason="it dies")],
        [t.SessionDesired(state="running", by=t.By())],
    ):
        assert fold(records(*BEGIN, failed, put_off)).alarms.put_off
        assert not fold(records(*BEGIN, failed, put_off, *again)).alarms.put_off


def test_one_that_only_waits_for_others_has_no_item() -> None:
    """The request of an endpoint is one for the fleet: the others that wait for its key ask nothing themselves."""
    s = fold(records(*BEGIN, t.SessionParked(why="auth", detail="")))
    made = row("s", s, Liveness(keeper=True, brain=False))
    assert made.group not in (NEEDS_YOU, ERRORS)
    assert attention.items([made], ()) == ()


@given(st.lists(st.sampled_from([*GROUPS]), max_size=20), st.integers(0, 5), st.integers(0, 5))
def test_what_rings_counts_as_running_too_and_what_the_queue_has_as_needing_somebody(
    groups: list[str], ringing: int, off: int
) -> None:
    rows = [SessionRow(f"s{i}", f"n{i}", "done", group, "x", "") for i, group in enumerate(groups)]
    rows += [SessionRow(f"r{i}", "r", "running", ERRORS, "x", "", alarms=["silent"]) for i in range(ringing)]
    rows += [SessionRow(f"p{i}", "p", "failed", ERRORS, "x", "", put_off="2026-01-01T00:00:00Z") for i in range(off)]
    total = counted(FleetView(), map(standing, rows))
    assert total.sessions == len(rows)
    assert total.running == groups.count(RUNNING) + ringing
    assert total.errors == groups.count(ERRORS) + ringing + off
    due = [item for item in attention.items(rows, ()) if item.deferred is None]
    assert total.needs_you == groups.count(NEEDS_YOU) + len(due)
