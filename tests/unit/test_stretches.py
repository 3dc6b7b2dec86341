"""When a session ran, waited and ended, from its log alone, and as the cells of a timeline."""

from __future__ import annotations

import re
import time
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from harness.domain.state_span import ENDED, KEPT, OFF, Stretch
from harness.events import types as t
from harness.projections.apply import advance
from harness.projections.state.session_state import SessionState
from widgets.fleet import timeline

START = 1_800_000_000
INTENT = t.SessionIntent(name="s", goal="g", repo="/r", branch="b", worktree="/w", model="m", checks=[], caps=t.Caps())
CREATED = t.SessionCreated(base="0" * 40, worktree="/w", branch="b")
ASKED = t.ApprovalRequested(approval_id="a1", kind="tool", title="push", options=["allow"])


def keeper(boot: str = "one") -> t.KeeperStarted:
    return t.KeeperStarted(pid=1, start=1, boot=boot)


def lease(gen: int) -> t.LeaseGranted:
    return t.LeaseGranted(gen=gen, epoch=1)


def played(*records: tuple[int, t.Body]) -> tuple[Stretch, ...]:
    """The stretches of a log whose records came so many seconds after the start."""
    state = SessionState()
    for seq, (at, body) in enumerate(records):
        ts = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(START + at))
        advance(state, t.Record(seq, ts, "harness", 0, body))
    return state.stretches.all


def told(*records: tuple[int, t.Body]) -> list[tuple[int, str]]:
    return [(stretch.since - START, stretch.state) for stretch in played(*records)]


def left(gen: int) -> t.LeaseEnded:
    return t.LeaseEnded(gen=gen, reason="parked", exit_code=0)


BEGIN = ((0, INTENT), (0, keeper()), (1, CREATED), (2, lease(1)))


def test_what_ran_waited_failed_and_went_on_is_known_to_the_second() -> None:
    assert told(
        *BEGIN,
        (60, ASKED),
        (61, t.SessionParked(why="approval")),
        (61, left(1)),
        (300, t.ApprovalDecided(approval_id="a1", decision_id="d1", decision="allow")),
        (301, lease(2)),
        (400, t.SessionDesired(state="paused")),
        (401, t.SessionParked(why="paused")),
        (401, t.LeaseEnded(gen=2, reason="parked", exit_code=0)),
        (500, t.SessionEnded(outcome="failed", reason="no")),
        (501, t.LeaseEnded(gen=2, reason="left", exit_code=0)),
        (900, t.SessionContinued()),
        (901, lease(3)),
    )[1:] == [
        (60, "waiting"),
        (300, "parked"),
        (301, "running"),
        (400, "parked"),
        (500, "failed"),
        (501, ENDED),
        (900, "running"),
    ]


def test_a_machine_that_was_off_or_slept_did_not_run() -> None:
    assert told(*BEGIN, (100, t.UserMessage(text="go on")), (9000, keeper("two")), (9001, lease(2)))[-2:] == [
        (100, OFF),
        (9000, "running"),
    ]
    assert told(*BEGIN, (5000, t.TimePassed(seconds=4000)))[-2:] == [(1000, OFF), (5000, "running")]


BODIES = st.sampled_from(
    [
        INTENT,
        CREATED,
        keeper(),
        keeper("two"),
        lease(1),
        lease(2),
        ASKED,
        t.ApprovalWithdrawn(approval_id="a1", why="no"),
        t.SessionParked(why="job"),
        t.SessionParked(why="limited"),
        t.SessionDesired(state="paused"),
        t.SessionDesired(state="running"),
        t.SessionEnded(outcome="done"),
        t.SessionEnded(outcome="failed"),
        t.SessionContinued(),
        t.TimePassed(seconds=50),
        t.TimePassed(seconds=-50),
    ]
)
LOGS = st.lists(st.tuples(st.integers(-500, 90_000), BODIES), max_size=60)


@given(LOGS, st.booleans())
def test_any_log_gives_stretches_in_order(records: list[tuple[int, t.Body]], ordered: bool) -> None:
    made = played(*(sorted(records, key=lambda r: r[0]) if ordered else records))
    assert len(made) <= KEPT
    assert all(a.since < b.since for a, b in pairwise(made))
    assert all(a.state != ENDED or b.state != ENDED for a, b in pairwise(made))


def test_a_long_life_is_kept_in_bounds_and_its_long_stretches_stay() -> None:
    flicker = [
        (10 * n + (40_000 if n > 300 else 0), body)
        for n in range(1, 700)
        for body in (
            (lease(n),) if n % 2 else (t.SessionParked(why="job"), t.LeaseEnded(gen=n, reason="p", exit_code=0))
        )
    ]
    made = played(*BEGIN, *flicker, (60_000, t.SessionEnded(outcome="done")))
    assert len(made) <= KEPT
    assert made[0].since == START
    assert [stretch.state for stretch in made[-2:]] == ["done", ENDED]
    assert max(b.since - a.since for a, b in pairwise(made)) >= 40_000


@given(LOGS, st.sampled_from(timeline.SPANS), st.integers(0, 200), st.integers(0, 100_000))
def test_a_timeline_is_as_wide_as_it_may_be(
    records: list[tuple[int, t.Body]], span: int, width: int, later: int
) -> None:
    made = timeline.runs(played(*records), START + later, span, width)
    assert sum(cell_len(text) for text, _ in made) == width
    assert cell_len(timeline.scale(START + later, span, width)) == width


@given(st.sampled_from(timeline.SPANS), st.integers(0, 200), st.integers(0, 10**7))
def test_the_clock_of_a_timeline_names_round_moments_whole_and_where_they_were(
    span: int, width: int, later: int
) -> None:
    now = START + later
    line = timeline.scale(now, span, width)
    assert "…" not in line
    clock = "[A-Z][a-z]{2} \\d\\d" if span > 2 * 86400 else "\\d\\d:\\d\\d"
    assert re.fullmatch(f" *(╵{clock} +)*(╵{clock})?", line)
    assert width < 20 or "╵" in line
    if span <= 86400:
        for found in re.finditer("╵(..):(..)", line):
            hour = int(found[1])
            minute = int(found[2])
            begun = time.localtime(now - span + span * found.start() / width)
            after = (hour * 60 + minute - begun.tm_hour * 60 - begun.tm_min) % 1440
            assert (after + 1) % 1440 <= span / width / 60 + 2, "a label begins in the cell of its moment"


def test_a_timeline_begins_with_the_shortest_span_that_holds_the_fleet() -> None:
    held = {0: 300, 300: 300, 301: 900, 900: 900, 901: 3600, 7000: 6 * 3600, 10**9: 7 * 86400}
    assert {age: timeline.fitting(age) for age in held} == held


def test_cells_say_what_took_most_of_their_time_and_an_end_stands_where_it_came() -> None:
    made = played(*BEGIN, (1800, ASKED), (2700, t.SessionEnded(outcome="done")))
    cells = "".join(text for text, _ in timeline.runs(made, START + 3600, 3600, 8))
    assert cells == "━━━━◆◆✓ "
    assert "".join(text for text, _ in timeline.runs(made, START + 3600, 7200, 8)) == "    ━━◆✓"
    assert "".join(text for text, _ in timeline.runs(made, START + 90_000, 3600, 8)) == " " * 8
    assert "".join(text for text, _ in timeline.runs((), START, 3600, 4)) == " " * 4
