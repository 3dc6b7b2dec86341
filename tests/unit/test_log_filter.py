"""Which records ``watchfloor logs`` shows: pure."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.cli.base.log_filter import Last, Wanted, wanted
from harness.domain.text import formatting
from harness.events import types as t

NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)


def record(seq: int, *, ago_s: int = 0, body: t.Body | None = None) -> t.Record:
    then = NOW - timedelta(seconds=ago_s)
    stamp = f"{then:%Y-%m-%dT%H:%M:%S}.{then.microsecond // 1000:03}Z"
    return t.Record(seq, stamp, "harness", 1, body or t.HarnessNote(level="info", text="x"))


@pytest.mark.parametrize("typed", ["2h", "2026-11-22T10:00:00+00:00", "2026-11-22T12:00+02:00"])
def test_a_time_is_a_duration_or_a_moment_in_any_zone(typed: str) -> None:
    chosen = wanted(typed, (), NOW)
    assert chosen.since == "2026-11-22T10:00:00.000Z"
    assert chosen.shows(record(1, ago_s=7200))
    assert not chosen.shows(record(1, ago_s=7201))


def test_a_time_without_a_zone_is_read_as_it_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    time.tzset()
    try:
        chosen = wanted("2026-11-22T15:30", (), NOW)
        assert chosen.since == "2026-11-22T10:00:00.000Z"
        assert formatting.zoned(chosen.since) == "2026-11-22 15:30 IST"
    finally:
        monkeypatch.undo()
        time.tzset()


@given(st.integers(0, 7 * 10**9).map(lambda s: datetime.fromtimestamp(s, UTC)), st.text())
def test_a_moment_that_is_shown_is_the_one_that_is_read(moment: datetime, other: str) -> None:
    shown = formatting.local(moment.isoformat(), "%Y-%m-%dT%H:%M:%S%z")
    assert formatting.parse_ts(shown) == moment.timestamp()
    assert formatting.local(other) == other or formatting.parse_ts(other) is not None


@pytest.mark.parametrize(
    "typed", ["soon", "", "2026-13-01", "5", "999999999999999d", "2026-11-22T12:00:01Z", "2099-01-01"]
)
def test_what_is_no_time_is_named(typed: str) -> None:
    with pytest.raises(ValueError, match="--since"):
        wanted(typed, (), NOW)


def test_a_kind_is_a_type_or_all_that_begin_with_its_word() -> None:
    note = record(1)
    assert Wanted(kinds=("harness",)).shows(note)
    assert Wanted(kinds=("harness.note", "tool")).shows(note)
    assert not Wanted(kinds=("harness.no",)).shows(note)
    assert not Wanted(kinds=("tool",)).shows(note)
    with pytest.raises(ValueError, match="--kind"):
        wanted(None, ["Tool Ended"], NOW)


def test_a_kind_is_a_word_that_the_log_shows() -> None:
    proposed = record(1, body=t.ToolProposed(call_id="c1", ref="r", tool="exec", input={"argv": ["ls"]}))
    chosen = wanted(None, ["wants", "asks you"], NOW)
    assert chosen.shows(proposed)
    assert not chosen.shows(record(2))
    with pytest.raises(ValueError, match=r"approval.*asks you.*wants"):
        wanted(None, ["want"], NOW)


@given(st.integers(0, 30), st.integers(0, 10), st.one_of(st.none(), st.integers(0, 40), st.just(1 << 70)))
def test_the_last_of_what_is_there_and_all_that_follows(there: int, later: int, count: int | None) -> None:
    last = Last(count)
    shown = [r.seq for seq in range(there) for r, _ in last.pass_on(record(seq), b"")]
    shown += [r.seq for r, _ in last.caught_up()]
    shown += [r.seq for seq in range(there, there + later) for r, _ in last.pass_on(record(seq), b"")]
    kept = there if count is None else min(count, there)
    assert shown == list(range(there - kept, there + later))
    assert not list(last.caught_up())
