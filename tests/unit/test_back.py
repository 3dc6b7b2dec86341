"""Looking back, line by line: what deserves a look comes first, every line of a log names its record, and every decided
request is there once.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.client import last_seen
from app.presenters import look_back
from app.presenters.since_last_seen import Told
from harness.protocol.config import config as configuration
from harness.protocol.paths import Folders
from harness.reports.briefing import KINDS, Brief, Figures, Line
from harness.reports.receipts import DECIDED, EFFECT, LOST, OPEN, STALE, TAKEN, WITHDRAWN, Receipt, Step
from harness.views.session_views import SessionRow

NOW = datetime(2026, 1, 2, tzinfo=UTC)
START = "2026-01-01T00:00:00.000Z"
WORDS = st.text(max_size=20)
LINES = st.builds(
    Line, st.integers(0, 99), st.just("2026-01-01T10:00:00.000Z"), st.sampled_from(KINDS), WORDS, st.just("info")
)
BRIEFS = st.builds(Brief, st.builds(Figures), st.lists(LINES, max_size=4).map(tuple), st.just(()), st.just(9))


def row(sid: str, group: str = "running") -> SessionRow:
    return SessionRow(sid, f"n{sid}", "running", group, "", "", do="answer it")


@given(
    st.lists(st.tuples(BRIEFS, st.sampled_from(["needs you", "errors", "running", "done"])), max_size=5), st.booleans()
)
def test_every_line_of_every_session_is_told_once_and_names_its_record(
    briefs: list[tuple[Brief, str]], broken: bool
) -> None:
    every = [Told(row(f"s{i}", group), one) for i, (one, group) in enumerate(briefs)]
    if broken:
        every.append(Told(row("bad"), Brief(Figures(), (), (), -1), problem="its log is damaged"))
    found = look_back.briefing(every, START, NOW)
    for one in every:
        told = [e for e in found if e.role == look_back.LINE and e.sid == one.row.sid]
        assert sorted((e.seq, e.text) for e in told) == sorted((x.seq, x.text) for x in one.brief.lines)
        assert [KINDS.index(e.mark) for e in told] == sorted(KINDS.index(e.mark) for e in told)
        if not one.brief.lines and not one.problem and one.row.group != "errors":
            assert one.row.name in found[-1].text, "what is quiet is named"
        if one.row.group == "errors":
            assert [e.text for e in found if e.sid == one.row.sid][-1] == "you: answer it", "however old it is"
    assert any("cannot be read: its log is damaged" in e.text for e in found) == broken
    groups = [next(o for o in every if o.row.sid == e.sid).row.group for e in found if e.role == look_back.SESSION]
    assert sorted(groups, key=lambda g: (g != "needs you", g != "errors")) == groups


def receipt(name: str, outcome: str, hour: int, decision: str = "") -> Receipt:
    steps = tuple(Step(stage, n, f"2026-01-01T{hour:02}:00:0{n}.000Z") for n, stage in enumerate(("asked", outcome)))
    return Receipt(name, "tool", "git push", "medium", "c1.0", outcome, decision, "tui", steps)


@given(st.lists(st.sampled_from([OPEN, DECIDED, TAKEN, EFFECT, STALE, WITHDRAWN, LOST]), max_size=20))
def test_every_request_that_is_over_is_told_once_the_newest_first(outcomes: list[str]) -> None:
    came = (DECIDED, TAKEN, EFFECT)
    made = [
        ("s", "cart", receipt(f"a{i}", outcome, i, "allow_edited" * (outcome in came)))
        for i, outcome in enumerate(outcomes)
    ]
    found = look_back.history(made, ["shop: its log is damaged"])
    told = [e.receipt.approval_id for e in found if e.receipt is not None]
    assert told == [f"a{i}" for i, outcome in reversed(list(enumerate(outcomes))) if outcome != OPEN]
    marks = [e.mark for e in found if e.receipt is not None]
    ends = [outcome for outcome in reversed(outcomes) if outcome != OPEN]
    assert marks == ["allow" if end in came else end for end in ends]
    assert found[-1].text == "not read: shop: its log is damaged"
    assert not found[-1].opens


def test_a_receipt_whole_has_every_step_with_its_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    try:
        found = look_back.facts(receipt("a1", EFFECT, 1, "allow"))
    finally:
        monkeypatch.undo()
        time.tzset()
    assert found[-2:] == [("asked", "#0 2026-01-01 01:00:00 UTC  "), ("effect", "#1 2026-01-01 01:00:01 UTC  ")]
    assert ("outcome", "allowed by you, on the screen · effect seen") in found


@pytest.mark.parametrize(("after", "gone", "expected"), [(100, 99, False), (100, 100, True), (0, 10**6, False)])
def test_an_absence_counts_from_when_the_screen_was_left(tmp_path: Path, after: int, gone: int, expected: bool) -> None:
    assert not last_seen.away(tmp_path, after, 1e9 + gone), "never left, never away"
    last_seen.left(tmp_path, 1e9)
    assert last_seen.away(tmp_path, after, 1e9 + gone) is expected
    (tmp_path / last_seen.LEFT).write_bytes(b"\xff nonsense")
    assert not last_seen.away(tmp_path, after, 1e9 + gone)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [('"90m"', 5400), ("3600", 3600), ("false", 0), ("", 4 * 3600), ('"soon"', None), ("-1", None)],
)
def test_the_absence_is_a_setting(tmp_path: Path, written: str, seconds: int | None) -> None:
    folders = Folders(tmp_path / "s", tmp_path / "r", tmp_path / "c")
    folders.config.mkdir()
    folders.config_file.write_text(f"[ui]\nbrief_after = {written}\n" if written else "")
    if seconds is None:
        with pytest.raises(configuration.ConfigError, match="brief_after"):
            configuration.load(folders)
    else:
        assert (configuration.load(folders).ui.brief_after or 0) == seconds
