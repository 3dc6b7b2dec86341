"""``why`` in a log of a million events, of which one in fifty thousand changed the file: with the index that the
supervisor keeps, and read from the end without one.
"""

from __future__ import annotations

import tempfile
import time
from itertools import islice
from pathlib import Path
from typing import Any

from harness.eventlog.index import OffsetIndex
from harness.eventlog.writer import LogWriter
from harness.reports import touched
from harness.reports.why import History
from tests.bench.biglog import EVENTS, turn
from tests.bench.table import Figure, bench

_WANTED = "src/wanted.py"
_EVERY = 50_000
_REACH_S = 0.3


def _event(i: int) -> tuple[str, dict[str, Any]]:
    kind, data = turn(i, f"event number {i:07d}: compiled module {i % 977} and ran its tests")
    at = i - i % 6
    path = _WANTED if at % _EVERY < 6 else f"src/part{i % 97}.py"
    if kind == "tool.proposed":
        return kind, {**data, "input": {**data["input"], "path": path}}
    return kind, {**data, "files_changed": [path]} if kind == "tool.ended" else data


def _asked(folder: Path, index: Path) -> tuple[float, int]:
    start = time.perf_counter()
    log = OffsetIndex(folder)
    found = len(list(islice(History(log, folder, index, _WANTED).changes(), 10)))
    log.close()
    return time.perf_counter() - start, found


@bench("why")
def why() -> list[Figure]:
    with tempfile.TemporaryDirectory(prefix="wf-bench-") as root:
        folder = Path(root) / "log"
        index = Path(root) / "touched"
        folder.mkdir(mode=0o700)
        log = LogWriter.open(folder, "whybench")
        for i in range(EVENTS):
            log.append(*_event(i), actor="harness")
            if i % 5000 == 4999:
                log.commit(sync=False)
        log.commit(sync=True)
        log.close()
        plain = [_asked(folder, index) for _ in range(5)]
        start = time.perf_counter()
        touched.extend(folder, index, EVENTS)
        made = time.perf_counter() - start
        known = [_asked(folder, index) for _ in range(5)]
    assert {found for _, found in plain} == {found for _, found in known}
    took = [seconds for seconds, _ in known]
    return [
        Figure("why, 1M-event log", "s", took, "≤ 0.3 s", max(took) <= _REACH_S, note=f"{known[0][1]} changes"),
        Figure("why, 1M-event log without its index", "s", [seconds for seconds, _ in plain], "", None),
        Figure("making that index once, in the background", "s", [made], "", None),
    ]
