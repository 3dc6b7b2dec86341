"""From a key to its paint: the selection moves in a floor of 32 sessions, idle and while they take 2,000 events a
second in all.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import re
import statistics
import time
from collections.abc import Callable
from multiprocessing.sharedctypes import Synchronized
from pathlib import Path

from harness.protocol.async_client import AsyncClient
from harness.protocol.connection.transport import UnixSocket
from tests.bench.fleet_costs import WAITING, crowd, looking
from tests.bench.screen import Screen
from tests.bench.table import Figure, bench, percentile

RATE = 2000
KEYS = 80
RUNS = 5
_ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]")
_SELECTED = re.compile(r"▌\S (job-\d\d)")


def _selected(screen: Screen) -> str:
    """The name in the newest paint of the list's selected row."""
    found = _SELECTED.findall(_ESCAPES.sub(b"", bytes(screen.seen)).decode("utf-8", "replace"))
    return found[-1] if found else ""


def _press(screen: Screen, key: bytes, arrived: Callable[[str], bool]) -> tuple[float, str]:
    while screen.pump(0):
        pass
    screen.seen.clear()
    start = time.perf_counter()
    screen.send(key)
    while time.perf_counter() - start < 5:
        screen.pump(0.5)
        name = _selected(screen)
        if name and arrived(name):
            return (time.perf_counter() - start) * 1000, name
    raise TimeoutError(f"the selection did not move within 5 s; the list said {_selected(screen)!r}")


def _walk(screen: Screen, path: list[str] | None = None) -> tuple[list[float], list[str]]:
    """Twenty rows down and up again, twice; `path` are the names that an earlier walk met."""
    samples: list[float] = []
    screen.send(b"j")  # there and back: only a row that looks different is painted
    screen.quiet(0.3, 1.0)
    screen.seen.clear()
    screen.send(b"k")
    screen.quiet(0.3, 1.0)
    here = _selected(screen)
    names = [here]
    for i in range(KEYS):
        expected = path[i] if path else None
        took, title = _press(
            screen,
            b"j" if (i // 20) % 2 == 0 else b"k",
            lambda t, e=expected, before=names[-1]: t == e if e else t != before,
        )
        samples.append(took)
        names.append(title)
        end = time.perf_counter() + 0.11
        while time.perf_counter() < end:
            screen.pump(0.02)
    return samples, names[1:]


async def _load(socket: Path, sids: list[str], sent: Synchronized[int], stop: Synchronized[int]) -> None:
    """Messages to all sessions in turn, paced; each becomes one durable event and one changed row."""
    clients = [await AsyncClient.connect(UnixSocket(socket), name="bench") for _ in range(4)]
    pending: set[asyncio.Task[object]] = set()
    start = time.perf_counter()
    number = 0
    while not stop.value:
        due = int((time.perf_counter() - start) * RATE)
        while number < due and len(pending) < 512:
            task: asyncio.Task[object] = asyncio.create_task(
                clients[number % 4].call("say", sid=sids[number % len(sids)], text=f"event {number}")
            )
            pending.add(task)
            task.add_done_callback(pending.discard)
            number += 1
        await asyncio.sleep(0.005)
        sent.value = number - len(pending)
    await asyncio.gather(*pending)


def _loader(socket: Path, sids: list[str], sent: Synchronized[int], stop: Synchronized[int]) -> None:
    asyncio.run(_load(socket, sids, sent, stop))


@bench("keys")
def keys() -> list[Figure]:
    with crowd(WAITING) as (f, sids):
        for sid in sids:
            f.approval(sid, 180)
            f.wait_event(sid, "session.parked", 60)
        with looking(f) as screen:
            idle, path = _walk(screen)
            context = multiprocessing.get_context("spawn")
            sent = context.Value("i", 0)
            stop = context.Value("i", 0)
            loader = context.Process(target=_loader, args=(f.folders.supervisor_socket, sids, sent, stop))
            loader.start()
            try:
                while not sent.value:
                    screen.pump(0.1)
                begin = time.perf_counter()
                first = sent.value
                runs = [_walk(screen, path)[0] for _ in range(RUNS)]
                rate = (sent.value - first) / (time.perf_counter() - begin)
            finally:
                stop.value = 1
                while loader.is_alive():
                    screen.pump(0.1)
    p95s = [percentile(run, 0.95) for run in runs]
    p95 = statistics.median(p95s)
    p95_idle = percentile(idle, 0.95)
    each = ", ".join(f"{value:.0f}" for value in p95s)
    note = f"p95 of each run {each} ms at {rate:,.0f} events/s reached; idle p95 {p95_idle:.0f} ms"
    return [
        Figure(
            f"key to paint, 32 sessions under load, p95 of {RUNS} runs",
            "ms",
            p95s,
            "median ≤ 40 ms",
            p95 <= 40,
            [p95_idle],
            "idle p95",
            p95 / p95_idle,
            note,
        )
    ]
