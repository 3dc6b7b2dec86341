"""The briefing of a fleet: thirty sessions of 100,000 events each, read on since the briefing before."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import msgspec

from harness.eventlog.writer import LogWriter
from harness.reports.briefing import brief
from harness.supervisor.serving.ops.briefing_ops import Gathered, read_on
from tests.bench.biglog import turn
from tests.bench.table import Figure, bench

SESSIONS = 30
EVENTS = 100_000
NEWER = 1_000
"""So many records came in each session since the briefing before."""
ROUNDS = 5
NOTABLE = 50
"""Every so many records one deserves a line."""


def _log(folder: Path) -> None:
    log = LogWriter.open(folder, "briefbench")
    for i in range(EVENTS):
        text = f"event number {i:07d}: compiled module {i % 977} and ran its tests"
        event = turn(i, text) if i % NOTABLE else ("breaker.opened", {"kind": "errors", "count": 5, "detail": text})
        log.append(*event, actor="harness")
        if i % 5000 == 4999:
            log.commit(sync=False)
    log.commit(sync=False)
    log.close()


def _told(folder: Path, known: Gathered, stop: int) -> bytes:
    return msgspec.json.encode(brief(read_on(folder, known, stop).course, ""))


@bench("brief")
def briefing() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="wf-bench-") as root:
        folder = Path(root) / "log"
        folder.mkdir(mode=0o700)
        _log(folder)
        fleet = [Gathered() for _ in range(SESSIONS)]
        stop = EVENTS - 1 - ROUNDS * NEWER
        whole: list[float] = []
        for known in fleet:
            start = time.perf_counter()
            _told(folder, known, stop)
            whole.append(time.perf_counter() - start)
        later: list[float] = []
        for _ in range(ROUNDS):
            stop += NEWER
            start = time.perf_counter()
            for known in fleet:
                _told(folder, known, stop)
            later.append(time.perf_counter() - start)
    return [
        Figure(f"briefing of {SESSIONS} × {EVENTS:,} events, {NEWER:,} new each", "s", later, "≤ 1 s", max(later) <= 1),
        Figure(f"the first one of a session of {EVENTS:,} events", "s", whole, "", None),
    ]
