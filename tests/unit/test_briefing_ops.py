"""A log is read on from where it was read to, no further than what is known of it, and damage is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.eventlog.writer import LogWriter
from harness.reports import briefing
from harness.supervisor.base.errors import OpError
from harness.supervisor.serving.ops.briefing_ops import Gathered, read_on

N = 300


@pytest.fixture
def log(tmp_path: Path) -> Path:
    folder = tmp_path / "log"
    folder.mkdir()
    writer = LogWriter.open(folder, "testsess00", segment_bytes=8192)
    for i in range(N):
        writer.append("breaker.opened", {"kind": f"k{i}", "count": 5}, actor="supervisor")
    writer.commit(sync=False)
    writer.close()
    return folder


def lines(known: Gathered) -> list[int]:
    return [line.seq for line in briefing.brief(known.course, "").lines]


def test_a_log_is_read_on_over_its_segments_and_never_beyond_what_is_known(log: Path) -> None:
    assert len(list(log.glob("*.jsonl"))) > 1
    known = read_on(log, Gathered(), 99)
    assert (known.seq, lines(known)) == (99, list(range(100)))
    known = read_on(log, known, N - 1)
    assert lines(known) == list(range(N))
    assert known.course == read_on(log, Gathered(), N - 1).course
    assert read_on(log, known, N - 1) is known


def overwritten(line: bytes) -> bytes:
    return b"x" * len(line)


def falsified(line: bytes) -> bytes:
    return line.replace(b'"count":5', b'"count":6')


@pytest.mark.parametrize("damage", [overwritten, falsified])
def test_damage_is_named_and_what_was_good_before_it_was_read(log: Path, damage: Callable[[bytes], bytes]) -> None:
    segment = log / "000001.jsonl"
    whole = segment.read_bytes().split(b"\n")
    whole[11] = damage(whole[11])
    segment.write_bytes(b"\n".join(whole))
    known = Gathered()
    with pytest.raises(OpError) as exc:
        read_on(log, known, N - 1)
    assert exc.value.code == "damaged"
    assert "record 10 " in str(exc.value)
    assert known.seq == 9
