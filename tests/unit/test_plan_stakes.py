"""What hangs on a check that passes: an entry, the end of the session, or nothing."""

from __future__ import annotations

import pytest

from harness.events import types as t
from harness.events.fold import advance
from harness.events.session_state import SessionState
from harness.plan.due import due
from harness.plan.stakes import hangs

TS = "2026-01-02T03:04:05.000Z"
ENTRIES = [t.PlanEntry(name, name, [f"check {name}", "check all"]) for name in ("A", "B")]


def folded(*bodies: t.Body, checks: tuple[str, ...] = (), fresh: str = "never") -> SessionState:
    s = SessionState()
    intent = t.SessionIntent(
        name="n",
        goal="g",
        repo="/r",
        branch="b",
        worktree="/w",
        model="m",
        checks=list(checks),
        ways=t.Ways(fresh=fresh),
    )
    for body in (intent, *bodies):
        advance(s, t.Record(s.seq + 1, TS, "test", 0, body))
    return s


def verdict(
    command: str, *, passed: bool = True, of: int = 9, index: int = 0, provisional: bool = False
) -> t.CheckVerdict:
    return t.CheckVerdict(call_id=f"c{of}.{index}", command=command, passed=passed, provisional=provisional)


PLAN = t.PlanLoaded(path="prd.json", form="tasks", entries=ENTRIES)


def test_the_end_of_a_session_hangs_on_each_of_its_checks_unless_one_of_the_round_fails() -> None:
    assert hangs(folded(checks=("x", "y")), "c9.0", "x")
    assert not hangs(folded(verdict("y", passed=False), checks=("x", "y")), "c9.1", "x")
    assert hangs(folded(verdict("y", passed=False, of=5), checks=("x", "y")), "c9.1", "x")  # of a round before


def test_an_entry_hangs_on_its_checks_until_it_passes() -> None:
    working = (PLAN, t.IterationStarted(n=1, entry="A", attempt=1, digest=""))
    assert hangs(folded(*working, fresh="per-task"), "c9.0", "check A")
    passes = t.PlanFlipped(entry="A", passes=True, why="", calls=[])
    between = (*working, passes, t.IterationEnded(n=1, entry="A", outcome="passed", reason=""))
    again = folded(*between, fresh="per-task")
    assert not hangs(again, "c9.0", "check A")  # run again before the next task
    assert hangs(again, "c9.0", "check all")  # which another entry needs too
    over = (*between, t.PlanFlipped(entry="B", passes=True, why="", calls=[]))
    assert hangs(folded(*over, fresh="per-task"), "c9.0", "check A")  # nothing is left to do: the session ends by it


@pytest.mark.parametrize("provisional", [True, False])
def test_no_entry_is_set_by_a_check_that_was_not_tried_where_it_was_due(provisional: bool) -> None:
    s = folded(PLAN, verdict("check A"), verdict("check all", index=1, provisional=provisional))
    assert [flip.entry for flip in due(s)] == ([] if provisional else ["A"])


def test_what_nothing_shows_to_fail_is_said_where_an_entry_passes() -> None:
    untried = t.CheckVerdict(call_id="c9.1", command="check all", passed=True, untried="a language")
    s = folded(PLAN, verdict("check A"), untried)
    assert [flip.why for flip in due(s)] == ["2 of 2 checks passed, 1 not tried"]
