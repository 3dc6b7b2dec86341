"""An agent asks its own log: short lines, bounded, none made up and none that was not asked for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from harness.eventlog.index import OffsetIndex
from harness.eventlog.writer import LogWriter
from harness.events import types as t
from harness.reports import history
from harness.reports.history import Question

MANY = 1200


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> OffsetIndex:
    folder = tmp_path_factory.mktemp("history") / "log"
    writer = LogWriter.open(folder, "s1")
    for number in range(MANY):
        body: t.Body = t.HarnessNote(level="info", text=f"note {number} " + "long " * 100)
        if number % 10 == 3:
            body = t.ToolEnded(call_id=f"c{number}.0", status="error", preview=f"E{number}: NEEDLE\nin two lines")
        wire = t.to_wire(body)
        writer.append(wire["type"], wire["data"], actor="x")
    writer.commit(sync=False)
    writer.close()
    return OffsetIndex(folder)


def seqs(text: str) -> list[int]:
    return [int(found[1]) for line in text.split("\n")[:-1] if (found := re.match(r"#(\d+) ", line))]


def test_the_newest_come_by_default(log: OffsetIndex) -> None:
    text = history.answer(log, Question(limit=5))
    assert seqs(text) == list(range(MANY - 5, MANY))
    assert text.split("\n")[-1].startswith("(5 of 1200 records shown; older ones")


def test_a_text_and_a_type_choose(log: OffsetIndex) -> None:
    found = seqs(history.answer(log, Question(grep="needle", kind="tool", limit=100)))
    assert found == [number for number in range(MANY) if number % 10 == 3][-len(found) :]
    assert len(found) > 20
    assert seqs(history.answer(log, Question(kind="tool.end"))) == []
    assert "none of the records looked at fits" in history.answer(log, Question(grep="no such words"))
    assert seqs(history.answer(log, Question(grep="E13:"))) == [13]


def test_it_goes_on_where_it_says(log: OffsetIndex) -> None:
    seen: list[int] = []
    start = 700
    while True:
        text = history.answer(log, Question(kind="tool", start=start, limit=20))
        seen += seqs(text)
        onward = re.search(r"go on with from (\d+)\)$", text)
        if onward is None:
            break
        start = int(onward[1])
    assert seen == [number for number in range(700, MANY) if number % 10 == 3]


def test_an_answer_is_bounded(log: OffsetIndex) -> None:
    text = history.answer(log, Question(limit=100))
    assert len(text.encode()) <= history.MOST_BYTES + 200
    assert all(len(line) <= 220 for line in text.split("\n"))


def test_it_looks_at_no_more_than_it_says(log: OffsetIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history, "MOST_LOOKED_AT", 50)
    text = history.answer(log, Question(kind="tool", start=0, limit=100))
    assert seqs(text) == [3, 13, 23, 33, 43]
    assert text.endswith("go on with from 50)")


def test_why_a_file_was_changed_is_answered_from_the_log_alone(tmp_path: Path) -> None:
    """What was decided, what it was done for, and what came of it."""
    writer = LogWriter.open(tmp_path / "log", "s1")
    edit = {"path": "src/split.py", "old": "//", "new": "/"}
    for body in (
        t.UserMessage(text="src/split.py must lose no cent", origin="human"),
        t.ToolProposed(call_id="c1.0", tool="edit_file", ref="t", input=edit, claim="integer division drops them"),
        t.ToolProposed(call_id="c1.1", tool="read_file", ref="u", input={"path": "README.md"}),
        t.PlanUpdated(trigger="assumption", reason="rounding up in src/split.py gives too much"),
        t.WorkCommitted(head="1" * 40, before="0" * 40, commits=[t.Commit("1111111", "src/split.py: deal out cents")]),
    ):
        wire = t.to_wire(body)
        writer.append(wire["type"], wire["data"], actor="x")
    writer.commit(sync=False)
    writer.close()
    text = history.answer(OffsetIndex(tmp_path / "log"), Question(grep="src/split.py"))
    assert seqs(text) == [0, 1, 3, 4]
    for told in ("must lose no cent", "edit_file", "gives too much", "deal out cents"):
        assert told in text
