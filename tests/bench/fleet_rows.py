"""The fleet's table with 1,000 sessions: sorting, and filtering by what is typed, to the lines that are shown."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

import msgspec
from textual.geometry import Region

from harness.views.session_views import SessionRow
from tests.bench.table import Figure, bench
from tests.tui.app_pilot import shown
from tests.tui.app_world import crowd
from widgets.fleet.fleet_filter import parse
from widgets.fleet.fleet_order import SORTINGS, View
from widgets.fleet.fleet_table import FleetTable

SESSIONS = 1000
TYPED = "repo:shop state:wai,run spent:>0.1 -is:ended thinking"
REACH_MS = 50


def _many(known: list[SessionRow]) -> list[SessionRow]:
    return [
        msgspec.structs.replace(
            known[n % len(known)],
            sid=f"s{n:09}",
            name=f"job-{n * 7919 % SESSIONS:03}",
            repo=f"/home/you/{'shop' if n % 3 else 'core'}",
            goal="Make the tests pass. " * 20,
            spent_nano=n * 7907 % SESSIONS * 1_000_000,
        )
        for n in range(SESSIONS)
    ]


async def _measure(root: Path) -> tuple[list[float], list[float]]:
    async with shown(root, crowd, size=(200, 50)) as s:
        await s.press("4")
        table = s.app.screen.query_one(FleetTable)
        table.set_rows(_many(list(s.app.snapshot.rows.values())))
        await s.until("all are there", lambda: len(table.shown) == SESSIONS)

        def took(change: Callable[[], View]) -> float:
            begin = time.perf_counter()
            table.set_view(change())
            table.render_lines(Region(0, 0, *table.size))
            return (time.perf_counter() - begin) * 1000

        def typed(most: int) -> View:
            return replace(View(), filter=parse(TYPED[:most]))

        sorts = [took(partial(View, c, t)) for t in (False, True) for c in SORTINGS]
        filters = [took(partial(typed, n)) for n in _typing()]
    return sorts, filters


def _typing() -> list[int]:
    """The lengths at which what was typed so far is a filter: after each word, and letter by letter in the last."""
    last = TYPED.rindex(" ") + 1
    return [at for at, letter in enumerate(TYPED) if letter == " "] + list(range(last + 1, len(TYPED) + 1))


@bench("table")
def table() -> list[Figure]:
    with tempfile.TemporaryDirectory() as folder:
        sorts, filters = asyncio.run(_measure(Path(folder)))
    return [
        Figure(f"fleet table, {SESSIONS:,} sessions: {what}", "ms", took, f"≤ {REACH_MS} ms", max(took) <= REACH_MS)
        for what, took in (("sort", sorts), ("filter", filters))
    ]
