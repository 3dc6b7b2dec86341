"""Checkpoints by the log alone: when one is due, which stand, which go, and what a restoring leaves to be done."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.events import types as t
from harness.projections.state.checkpoints import Checkpoints, after, due, surplus
from harness.supervisor.sessions.undo import history
from tests.unit.test_events_fold import line

NOON = "2026-11-22T12:00:00.000Z"


def at(minute: int) -> str:
    return f"2026-11-22T12:{minute:02d}:00.000Z"


def fold(*bodies: t.Body, start: Checkpoints | None = None, first: int = 0) -> Checkpoints:
    """Each body one minute after the one before."""
    state = start or Checkpoints()
    for seq, body in enumerate(bodies, first):
        state = after(state, t.Record(seq, at(seq % 60), "supervisor", 0, body))
    return state


def call(number: int, snapshot: str = "s1.00") -> t.ToolStarted:
    return t.ToolStarted(call_id=f"c{number}.0", action_hash="", effect="contained", snapshot=snapshot)


def verdict(command: str, passed: bool = True) -> t.CheckVerdict:
    return t.CheckVerdict(call_id="c1.0", command=command, passed=passed)


def flip(entry: str, passes: bool = True) -> t.PlanFlipped:
    return t.PlanFlipped(entry=entry, passes=passes, why="", calls=[])


def made(number: int, through: int, why: str = "check", passing: list[str] | None = None) -> t.CheckpointCreated:
    return t.CheckpointCreated(
        checkpoint_id=f"k{number}",
        label="",
        why=why,
        through_seq=through,
        snapshot=f"s{number}.00",
        commit="c" * 40,
        head="d" * 40,
        passing=passing,
    )


def label(state: Checkpoints, minute: int = 0, minutes: int = 15) -> str | None:
    found = due(state, at(minute), minutes)
    return f"{found.why}: {found.label}" if found is not None else None


def test_what_the_processes_before_left_is_kept_before_it_goes_on() -> None:
    anew = t.KeeperStarted(pid=1, start=1, boot="b")
    assert label(fold(anew, anew)) is None, "nothing changed"
    assert label(fold(anew, call(1), anew)) == "ended: as its processes were ended"
    assert label(fold(call(1), anew, flip("US-1"))) == "entry: entry US-1 passed"
    assert label(fold(call(1), anew, made(1, 1))) is None
    assert label(fold(call(1), made(1, 0), anew)) is None


def test_a_milestone_asks_for_one_when_something_changed() -> None:
    assert label(fold(verdict("make test"))) is None, "the worktree is as it was"
    assert label(fold(call(1), verdict("make test", passed=False))) is None
    assert label(fold(call(1), verdict("make test"))) == "check: check passed: make test"
    assert label(fold(call(1), flip("US-1"), flip("US-2"), verdict("x"))) == "entry: entries US-1, US-2 passed"
    assert label(fold(call(1), flip("US-1", False))) is None
    reads = t.ToolStarted(call_id="c1.0", action_hash="", effect="read")
    assert label(fold(reads, verdict("x"))) is None


def test_a_check_of_the_plan_is_no_milestone_beside_its_entry() -> None:
    plan = t.PlanLoaded(path="prd.json", form="tasks", entries=[t.PlanEntry("US-1", "One", ["test -e one"])])
    assert label(fold(plan, call(1), verdict("test -e one"))) is None
    assert label(fold(plan, call(1), verdict("test -e one"), flip("US-1"))) == "entry: entry US-1 passed"
    assert label(fold(plan, call(1), verdict("make test"))) == "check: check passed: make test"


def test_the_last_entry_of_a_phase_ends_it() -> None:
    entries = [t.PlanEntry(f"US-{n}", "", [], phase="" if n == 4 else f"p{n // 3}") for n in range(1, 5)]
    plan = t.PlanLoaded(path="prd.json", form="tasks", entries=entries)
    assert label(fold(plan, call(1), flip("US-1"))) == "entry: entry US-1 passed"
    assert label(fold(plan, call(1), flip("US-1"), flip("US-2"))) == "phase: phase p0 ended"
    taken_back = fold(plan, call(1), flip("US-1"), flip("US-2"), flip("US-1", False))
    assert label(taken_back) == "entry: entry US-2 passed"
    assert label(fold(plan, call(1), flip("US-4"))) == "entry: entry US-4 passed"


def test_what_was_taken_over_from_another_session_is_no_change() -> None:
    assert label(fold(flip("US-1"), t.SessionCreated(base="", worktree="", branch=""), verdict("x"))) is None


def test_minutes_of_change_ask_for_one() -> None:
    state = fold(t.HarnessNote(level="info", text=""), call(1), call(2))
    assert label(state, minute=15) is None
    assert label(state, minute=16) == "time: 15 minutes of change"
    assert label(state, minute=16, minutes=0) is None


def test_one_that_was_made_settles_what_came_before_it_and_nothing_after() -> None:
    state = fold(call(1), verdict("x"), made(1, 1))
    assert (label(state, minute=59), [one.id for one in state.kept]) == (None, ["k1"])
    assert label(fold(call(1), verdict("x"), call(2), made(1, 1)), minute=59) == "time: 15 minutes of change"
    assert label(fold(call(1), verdict("x"), flip("US-1"), made(1, 1))) == "entry: entry US-1 passed"


def test_an_undo_takes_milestones_away_and_a_restoring_waits_to_be_recorded() -> None:
    back = t.UndoEnded(undo_id="u1", call_id="k1")
    state = fold(call(1), made(1, 0), call(2), verdict("x"), back)
    assert label(state) is None
    assert state.bringing == ("k1", "u1")
    assert fold(call(1), made(1, 0), t.UndoEnded(undo_id="u1", call_id="k1", error="no")).bringing is None
    assert fold(call(1), made(1, 0), t.UndoEnded(undo_id="u1", call_id="c9.0")).bringing is None
    state = after(state, t.Record(9, NOON, "supervisor", 0, t.CheckpointRestored(checkpoint_id="k1", undo_id="u1")))
    assert (state.bringing, state.restored) == (None, "u1")


@given(st.lists(st.sampled_from(["check", "hand", "time"]), max_size=30), st.integers(1, 12), st.integers(0, 30))
def test_what_goes_is_old_and_what_a_person_asked_for_stays_longest(kinds: list[str], keep: int, spare: int) -> None:
    state = fold(*(made(n, n, why) for n, why in enumerate(kinds, 1)))
    gone = surplus(state, keep, f"k{spare}")
    stays = [one for one in state.kept if one not in gone]
    assert len(stays) <= max(keep, 2) or (len(stays) == keep + 1 and any(one.id == f"k{spare}" for one in stays))
    assert len(stays) >= min(keep, len(kinds))
    assert f"k{spare}" not in [one.id for one in gone]
    assert state.kept[-1:] == tuple(stays[-1:])
    if any(one.why == "hand" for one in gone):
        assert all(one.why == "hand" or one.id in (f"k{spare}", state.kept[-1].id) for one in stays)
    left = after(state, t.Record(99, NOON, "", 0, t.CheckpointDropped(checkpoint_ids=[o.id for o in gone], keep=keep)))
    assert list(left.kept) == stays
    assert left.next_id == f"k{len(kinds) + 1}"


def test_going_back_to_a_checkpoint_says_again_which_calls_are_in_the_worktree() -> None:
    bodies: list[t.Body] = [
        call(1),
        made(1, 0),
        call(2),
        t.UndoStarted(undo_id="u1", call_id="c2.0", snapshot="s2.00", before="s3.00"),
        call(3),
        made(2, 4),
        t.UndoStarted(undo_id="u2", call_id="k1", snapshot="s1.00", before="s4.00"),
        t.UndoStarted(undo_id="u3", call_id="k2", snapshot="s2.00", before="s5.00"),
    ]

    def undone(count: int) -> list[str]:
        lines = [line(seq, body.TYPE, t.to_wire(body)["data"]) for seq, body in enumerate(bodies[:count])]
        return [point.call_id for point in history(lines) if point.undone]

    assert undone(6) == ["c2.0"]
    assert undone(7) == ["c2.0", "u1", "c3.0"]
    assert undone(8) == ["c2.0", "u2"]
