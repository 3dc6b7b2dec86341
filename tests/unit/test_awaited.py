"""Whoever waits for a record learns that it came, or that none comes any more."""

from __future__ import annotations

import asyncio

import pytest

from harness.supervisor.base.errors import LinkLost
from harness.supervisor.fleet.awaited import Awaited


async def test_each_is_told_when_its_record_came_and_not_before() -> None:
    awaited = Awaited()
    waits = {seq: asyncio.create_task(awaited.record(seq)) for seq in (7, 3, 5, 3)}
    again = asyncio.create_task(awaited.record(3))
    await asyncio.sleep(0)
    awaited.came(4)
    await asyncio.gather(waits[3], again)
    assert not waits[5].done()
    assert not waits[7].done()
    awaited.came(7)
    await asyncio.gather(waits[5], waits[7])


async def test_a_condition_is_looked_at_after_each_record() -> None:
    awaited = Awaited()
    seen: list[int] = []
    wait = asyncio.create_task(awaited.condition(lambda: len(seen) == 2, 60.0))
    await asyncio.sleep(0)
    for seq in (1, 2):
        assert not wait.done()
        seen.append(seq)
        awaited.came(seq)
    await wait


async def test_all_learn_that_the_link_is_lost_and_what_comes_later_is_nobody_s() -> None:
    awaited = Awaited()
    waits = [asyncio.create_task(awaited.record(1)), asyncio.create_task(awaited.condition(lambda: False, 60.0))]
    await asyncio.sleep(0)
    awaited.lost("gone")
    for wait in waits:
        with pytest.raises(LinkLost, match="gone"):
            await wait
    awaited.came(9)
    with pytest.raises(TimeoutError):
        await awaited.condition(lambda: True, 0.0)
