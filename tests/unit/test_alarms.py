"""Alarms ring exactly when a limit is passed, once, are cleared once, and never for a session that waits."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from harness.domain.problems import RINGS
from harness.events import types as t
from harness.projections.apply import advance, fold
from harness.projections.state.alarm_state import until
from harness.projections.state.row_state import Liveness
from harness.projections.state.session_state import SessionState
from harness.views import alarms, attention
from harness.views.alarms import COST, KINDS, NO_PROGRESS, SILENT, STUCK, AlarmLimits, changes, found
from harness.views.rows import row
from harness.views.session_views import ERRORS, RUNNING

START = datetime(2026, 3, 1, tzinfo=UTC).timestamp()
DOLLAR = 1_000_000_000
BEGIN: tuple[t.Body, ...] = (
    t.SessionIntent(name="cart", repo="/r", branch="b", worktree="/w", goal="g", model="m", checks=["make test"]),
    t.SessionCreated(worktree="/w", branch="b", base="0" * 40),
    t.LeaseGranted(gen=1, epoch=1, pid=1),
)
LIMITS = AlarmLimits(silent_s=600, no_progress_nano=2 * DOLLAR, minute_nano=DOLLAR, same_failure=3)


class World:
    """A log with a clock that the test moves."""

    def __init__(self) -> None:
        self.now = START
        self.state = SessionState()
        self.log(*BEGIN)

    def log(self, *bodies: t.Body) -> None:
        for body in bodies:
            advance(self.state, t.Record(self.state.seq + 1, until(self.now, 0), "supervisor", 0, body))

    def reply(self, dollars: float) -> None:
        paid = int(dollars * DOLLAR)
        usage = t.Usage(input=1, output=1)
        self.log(t.ModelMessage(request_id="r", message_id="m", model="m", stop="done", usage=usage, cost_nano=paid))

    def verdict(self, *, passed: bool, why: str = "") -> None:
        self.log(t.CheckVerdict(call_id="c", command="make test", passed=passed, why=why, ran=1))

    def look(self) -> list[t.Body]:
        """What the supervisor would put on record now; it does."""
        owed = changes(self.state, self.now, LIMITS)
        self.log(*owed)
        return owed

    def raised(self) -> set[str]:
        self.look()
        return set(self.state.alarms.raised)


def test_silence_rings_at_its_limit_and_ends_with_the_next_sign() -> None:
    w = World()
    w.now += LIMITS.silent_s - 1
    assert w.look() == []
    w.now += 1
    (rang,) = w.look()
    assert isinstance(rang, t.AlarmRaised)
    assert (rang.alarm, rang.evidence) == (SILENT, [2])
    assert w.look() == []
    w.reply(0.01)
    (over,) = w.look()
    assert isinstance(over, t.AlarmCleared)
    assert w.look() == []


def test_money_without_progress_rings_and_a_check_that_passes_again_ends_it() -> None:
    w = World()
    w.verdict(passed=False)
    for _ in range(8):
        w.now += 300
        w.reply(0.3)
    assert w.raised() == {NO_PROGRESS}
    w.verdict(passed=True)
    assert w.raised() == set()


def test_money_of_hours_ago_is_not_burnt_within_an_hour() -> None:
    w = World()
    w.now += 7200  # nothing came closer to the goal for hours
    for _ in range(20):
        w.now += 590
        w.reply(0.2)  # 1.2 dollars an hour
    assert NO_PROGRESS not in w.raised()
    assert w.state.spent_nano > LIMITS.no_progress_nano


def test_a_dear_minute_rings_and_is_over_only_when_it_is_clearly_less() -> None:
    w = World()
    w.now += 300 - w.now % 300 + 150
    w.reply(8)
    assert COST in w.raised()
    w.now += 10
    assert COST in w.raised()
    w.now += 1200
    assert COST not in w.raised()


def test_a_check_that_fails_otherwise_is_not_stuck() -> None:
    w = World()
    for why in ("one", "two", "one", "one"):
        w.verdict(passed=False, why=why)
    assert STUCK not in w.raised()
    w.verdict(passed=False, why="one")
    assert STUCK in w.raised()
    assert w.state.alarms.raised[STUCK].evidence == [5, 6, 7]
    w.verdict(passed=False, why="three")
    assert STUCK not in w.raised()


def test_a_session_that_waits_rings_nothing_and_clears_what_rang() -> None:
    for waits in (
        t.SessionParked(why="limited", detail="x"),
        t.SessionDesired(state="paused", by=t.By()),
        t.ApprovalRequested(approval_id="a1", kind="question", title="?", options=["answer"]),
        t.Quarantined(part="brain", restarts=3, reason="x"),
    ):
        w = World()
        w.now += 10_000
        assert w.raised() == {SILENT}
        w.log(waits)
        assert w.raised() == set()


def test_an_end_leaves_nothing_raised() -> None:
    w = World()
    w.now += 10_000
    assert w.raised() == {SILENT}
    w.log(t.SessionEnded(outcome="done"))
    assert w.state.alarms.raised == {}
    assert w.look() == []


def test_the_row_and_the_queue_say_it_until_it_is_put_off_and_again_after_that() -> None:
    w = World()
    w.now += 10_000
    w.look()
    live = Liveness(keeper=True, brain=True)
    made = row("s1", w.state, live, now=w.now)
    assert (made.state, made.group) == ("running", ERRORS)
    assert "nothing came of it" in made.detail
    (item,) = attention.items([made], [])
    assert item.kind == RINGS
    assert item.detail[attention.COMMAND] == "watchfloor snooze s1"
    assert item.detail["seen in"] == "record 2 of its log"
    w.log(t.AlarmSnoozed(alarms=[SILENT], until=until(w.now, 60)))
    quiet = row("s1", w.state, live, now=w.now + 59)
    assert (quiet.group, quiet.alarms) == (RUNNING, [])
    assert row("s1", w.state, live, now=w.now + 60).group == ERRORS


STEPS = st.lists(
    st.one_of(
        st.integers(0, 2000),
        st.floats(0, 3),
        st.booleans(),
        st.sampled_from(["limited", "done", "paused", "running", "restart"]),
    ),
    max_size=30,
)


@given(STEPS)
def test_each_alarm_is_raised_and_cleared_in_turn_and_a_second_look_owes_nothing(steps: list[object]) -> None:
    w = World()
    held: dict[str, bool] = dict.fromkeys(KINDS, False)
    for step in steps:
        match step:
            case bool():
                w.verdict(passed=step)
            case int():
                w.now += step
            case float():
                w.reply(step)
            case "limited":
                w.log(t.SessionParked(why="limited", detail=""))
            case "restart":
                w.log(t.LeaseGranted(gen=w.state.lease_gen + 1, epoch=1, pid=1))
            case "done":
                w.log(t.SessionEnded(outcome="done"))
                held = dict.fromkeys(KINDS, False)
            case state:
                w.log(t.SessionDesired(state=str(state), by=t.By()))
        for one in w.look():
            assert isinstance(one, t.AlarmRaised | t.AlarmCleared)
            assert held[one.alarm] is isinstance(one, t.AlarmCleared)
            held[one.alarm] = isinstance(one, t.AlarmRaised)
            if isinstance(one, t.AlarmRaised):
                assert one.value >= one.limit
                assert all(0 <= seq <= w.state.seq for seq in one.evidence)
        assert w.look() == []
        assert {kind for kind in KINDS if held[kind]} == set(w.state.alarms.raised)


def test_a_limit_of_nothing_is_never_passed() -> None:
    w = World()
    w.now += 10_000
    w.reply(50)
    for _ in range(9):
        w.verdict(passed=False)
    w.now += 5000
    assert found(w.state, w.now, AlarmLimits(None, None, None, None)) == {}
    assert alarms.running(w.state)
    assert fold([]).alarms.raised == {}
