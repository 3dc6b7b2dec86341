"""Appending to the log: classes A and B of the writer, and through a real keeper's socket."""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from harness.eventlog.writer import LogWriter
from harness.protocol.connection.blocking import Connection
from harness.protocol.connection.struct_json import STRUCT_JSON
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


def _one_at_a_time(peer: Connection) -> float:
    """µs for one class A append and its reply, by the client that an agent's process has."""
    asked: dict[str, object] = {"records": [{"type": "harness.note", "data": DATA}], "cls": "A"}
    n = 1000
    start = time.perf_counter()
    for _ in range(n):
        peer.call("append", 60.0, asked)
    return (time.perf_counter() - start) / n * 1e6


def _many_on_the_way(link: Link) -> float:
    """Class B appends a second with 256 requests on the way."""
    n = 10_000
    window = 256
    records = [{"type": "harness.note", "data": DATA}]
    start = time.perf_counter()
    waiting = [link.send("append", records=records, cls="B") for _ in range(window)]
    for i in range(n):
        link.reply(waiting[i])
        if len(waiting) < n:
            waiting.append(link.send("append", records=records, cls="B"))
    return n / (time.perf_counter() - start)


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
        peer = Connection(house.supervisor().sock, STRUCT_JSON)
        socket_a: list[float] = []
        beside: list[float] = []
        for _ in range(ROUNDS):
            beside.append(_raw(Path(root), 1000, 1, line) / 1000 * 1e6)
            socket_a.append(_one_at_a_time(peer))
        link = house.supervisor(epoch=2)
        socket_b = [_many_on_the_way(link) for _ in range(ROUNDS)]
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
            ratio(socket_a, beside) <= 2,
            beside,
            "raw append + fdatasync",
            ratio(socket_a, beside),
        ),
    ]
