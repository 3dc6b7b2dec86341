"""The queue with a thousand open requests: processor time from the key to the painted card, and from card to card."""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path

from app.screens.queue import QueueScreen
from tests.bench.table import Figure, bench
from tests.tui.app_pilot import Shown, shown
from tests.tui.app_world import PUSH, World, stamp
from widgets.card.approval_card import ApprovalCard

REQUESTS = 1000
SESSIONS = 50
ROUNDS = 5
NEXT = 20


def _crowded(world: World) -> None:
    sessions = [world.add(f"busy-{n}") for n in range(SESSIONS)]
    for number in range(REQUESTS):
        argv = ["git", "push", "origin", f"request-{number}"]
        world.ask(sessions[number % SESSIONS], PUSH | {"argv": argv}, title=f"request {number}", ts=stamp(number))


async def _timed(s: Shown, key: str, after: str) -> float:
    """Milliseconds of this process between a key and the first paint of a card that is another one than ``after``'s."""
    before = time.process_time()
    await s.pilot.press(key)
    while not _painted(s, after):
        await asyncio.sleep(0)
    return (time.process_time() - before) * 1000


def _painted(s: Shown, after: str) -> bool:
    screen = s.app.screen
    if not isinstance(screen, QueueScreen) or not screen.query(ApprovalCard):
        return False
    view = screen.card.view
    return view is not None and view.approval_id != after and screen.card.begun


async def _measured() -> tuple[list[float], list[float]]:
    opened: list[float] = []
    moved: list[float] = []
    with tempfile.TemporaryDirectory(prefix="wf-bench-queue-") as folder:
        async with shown(Path(folder), _crowded) as s:
            await s.until("all of them known", lambda: len(s.app.snapshot.approvals) == REQUESTS)
            for _ in range(ROUNDS):
                opened.append(await _timed(s, "2", ""))
                for _ in range(NEXT):
                    screen = s.app.screen
                    assert isinstance(screen, QueueScreen)
                    moved.append(await _timed(s, "j", screen.requests.selected))
                await s.press("1")
    return opened, moved


@bench("queue")
def queue() -> list[Figure]:
    opened, moved = asyncio.run(_measured())
    note = "processor time, in the pilot: painting counted, the terminal not"
    return [
        Figure(
            f"queue of {REQUESTS:,}: open", "ms", opened, "≤ 200 ms", sorted(opened)[len(opened) // 2] <= 200, note=note
        ),
        Figure("the next card", "ms", moved, "≤ 30 ms", sorted(moved)[len(moved) // 2] <= 30, note=note),
    ]
