"""Appending to the log: classes A and B of the writer, and through a real keeper's socket."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from harness.events.log import LogWriter
from tests.bench.table import Figure, bench, ratio
from tests.process.keeperlib import Link, keepers

DATA = {"level": "info", "text": "x" * 120, "component": "bench"}
ROUNDS = 7


def _raw(folder: Path, n: int, sync_every: int | None, line: bytes) -> float:
    fd = os.open(folder / f"raw{time.monotonic_ns()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    start = time.perf_counter()
    for i in range(n):
        os.write(fd, line)
        if sync_every and i % sync_every == sync_every - 1:
            os.fdatasync(fd)
    spent = time.perf_counter() - start
    os.close(fd)
    return spent


def _through_keeper(link: Link) -> tuple[float, float]:
    """(µs for one class A append and its reply, class B appends a second with 256 requests on the way)."""
    record = ("harness.note", DATA)
    n = 1000
    start = time.perf_counter()
    for _ in range(n):
        link.append(record, cls="A")
    one = (time.perf_counter() - start) / n * 1e6
    n, window = 10_000, 256
    start = time.perf_counter()
    waiting = [link.send("append", records=[{"type": record[0], "data": DATA}], cls="B") for _ in range(window)]
    for i in range(n):
        link.reply(waiting[i])
        if len(waiting) < n:
            waiting.append(link.send("append", records=[{"type": record[0], "data": DATA}], cls="B"))
    return one, n / (time.perf_counter() - start)


@bench("append")
def append() -> list[Figure]:
    class_a: list[float] = []
    raw_a: list[float] = []
    class_b: list[float] = []
    raw_b: list[float] = []
    with tempfile.TemporaryDirectory(prefix="wf-bench-", dir=Path.home()) as root:
        folder = Path(root)
        for i in range(ROUNDS):
            log = LogWriter.open(folder / f"log{i}", "benchbench")
            n = 2000
            start = time.perf_counter()
            for _ in range(n):
                log.append("harness.note", DATA, actor="harness")
                log.commit(sync=True)
            class_a.append((time.perf_counter() - start) / n * 1e6)
            n = 20000
            start = time.perf_counter()
            for k in range(n):
                log.append("harness.note", DATA, actor="harness")
                if k % 64 == 63:
                    log.commit(sync=True)
            log.commit(sync=True)
            class_b.append(n / (time.perf_counter() - start))
            line = b"x" * (log.size // (2000 + n))
            log.close()
            raw_a.append(_raw(folder, 2000, 1, line) / 2000 * 1e6)
            raw_b.append(n / _raw(folder, n, None, line))
    with tempfile.TemporaryDirectory(prefix="wf-bench-", dir=Path.home()) as root, keepers(Path(root)) as house:
        house.spawn()
        link = house.supervisor()
        socket_a, socket_b = map(list, zip(*(_through_keeper(link) for _ in range(ROUNDS)), strict=True))
        link.close()
    a = ratio(class_a, raw_a)
    return [
        Figure(
            "keeper's log writer, class B (groups of 64, durable)",
            "/s",
            class_b,
            "≥ 10,000/s",
            min(class_b) >= 10_000,
            raw_b,
            "raw append, no sync",
            ratio(class_b, raw_b),
        ),
        Figure(
            "keeper's log writer, class A (durable each)",
            "µs",
            class_a,
            "≤ 2×",
            a <= 2,
            raw_a,
            "raw append + fdatasync",
            a,
        ),
        Figure(
            "the same through a keeper's socket, class B, 256 on the way",
            "/s",
            socket_b,
            "≥ 10,000/s",
            min(socket_b) >= 10_000,
            raw_b,
            "raw append, no sync",
            ratio(socket_b, raw_b),
        ),
        Figure(
            "the same through a keeper's socket, class A, one at a time",
            "µs",
            socket_a,
            "≤ 2×",
            ratio(socket_a, raw_a) <= 2,
            raw_a,
            "raw append + fdatasync",
            ratio(socket_a, raw_a),
        ),
    ]
