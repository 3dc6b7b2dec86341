"""Sixty-four requests at once on one cap: exactly as many are granted as fit, and no prefix of the ledger passes the
cap.
"""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest

from harness.agents.supervisor_requests import Reserve
from harness.budget.ledger import CapReached, Ledger
from harness.budget.ledger_types import Reserved, decode
from harness.eventlog.reader import read
from harness.events.types import Caps, Usage
from harness.protocol.config.sections import CapsConfig
from harness.supervisor.money.reservations import DurableLedger

MODEL = "claude-sonnet-5-5"
ONE = 1000 * 2500 + 1000 * 10_000


@pytest.mark.parametrize(
    ("limits", "caps", "cap"),
    [
        (CapsConfig(day_usd=None), Caps(usd_nano=20 * ONE), "session.usd"),
        (CapsConfig(day_usd=20 * ONE), Caps(), "day.usd"),
        (CapsConfig(day_usd=None, fleet_usd=20 * ONE), Caps(), "fleet.usd"),
        (CapsConfig(day_usd=None, fleet_tokens=20 * 2000), Caps(), "fleet.tokens"),
    ],
)
async def test_sixty_four_at_once_on_one_cap(tmp_path: Path, limits: CapsConfig, caps: Caps, cap: str) -> None:
    books = await DurableLedger.open(tmp_path / "ledger", lambda: limits)
    sids = ["s"] * 64 if cap.startswith("session") else [f"s{n % 8}" for n in range(64)]

    asked = (books.reserve(sids[n], Reserve(f"q{n}", 1, MODEL, 1000, 1000), caps) for n in range(64))
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert sum(isinstance(a, Reserved) for a in answers) == 20
    assert [a.cap for a in answers if isinstance(a, CapReached)] == [cap] * 44
    await books.close()
    _no_prefix_is_over(tmp_path / "ledger")


async def test_reserving_and_settling_in_any_order_never_passes_the_cap(tmp_path: Path) -> None:
    limits = CapsConfig(day_usd=30 * ONE, fleet_usd=60 * ONE)
    books = await DurableLedger.open(tmp_path / "ledger", lambda: limits)
    dice = random.Random(7)

    async def brain(sid: str) -> None:
        for number in range(12):
            try:
                made = await books.reserve(sid, Reserve(f"q{number}", 1, MODEL, 1000, 1000), Caps(usd_nano=6 * ONE))
            except CapReached:
                continue
            usage = None if dice.random() < 0.2 else Usage(input=dice.randint(0, 1000), output=dice.randint(0, 1000))
            await books.settle(made.reservation, usage)

    await asyncio.gather(*(brain(f"s{n}") for n in range(16)))
    assert books.fleet().reserved_nano == 0
    await books.close()
    assert _no_prefix_is_over(tmp_path / "ledger") > 100


def _no_prefix_is_over(folder: Path) -> int:
    """Replay record by record; the caps in force stand in each reservation. Returns the number of records."""
    ledger = Ledger()
    held = dict[str, Reserved]()
    count = 0
    for line in read(folder):
        record = decode(line)
        assert record is not None
        ledger.apply(record)
        count += 1
        if isinstance(record, Reserved):
            held[record.reservation] = record
        for each in held.values():
            assert list(ledger.over(each)) == []
    return count
