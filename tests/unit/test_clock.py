"""Time that went on without us: sleep, and clocks that were set."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from harness.supervisor.upkeep.clock import Gap, Ticks, follow, gap, read, words

START = Ticks(1_000_000.0, 500.0, 500.0)


@pytest.mark.parametrize(
    ("now", "found"),
    [
        (Ticks(1_000_002.0, 502.0, 502.0), None),
        (Ticks(1_000_060.0, 560.0, 560.0), None),  # we were slow, the machine was not
        (Ticks(1_003_600.0, 4100.0, 502.0), Gap(3598.0, 0.0)),
        (Ticks(1_086_402.0, 502.0, 502.0), Gap(0.0, 86_400.0)),
        (Ticks(1_604_802.0, 502.0, 502.0), Gap(0.0, 7 * 86_400.0)),
        (Ticks(913_602.0, 502.0, 502.0), Gap(0.0, -86_400.0)),
        (Ticks(1_000_000.0, 4100.0, 500.0), Gap(3600.0, -3600.0)),
        (Ticks(1_000_003.0, 502.0, 502.0), None),  # the clock was corrected by a second
    ],
)
def test_gap(now: Ticks, found: Gap | None) -> None:
    assert gap(START, now) == found


def test_words() -> None:
    assert words(Gap(3600.0, 0.0)) == "the machine slept for 3600 s"
    assert words(Gap(0.0, -60.0)) == "the clock was set back by 60 s"
    assert words(Gap(60.0, 60.0)) == "the machine slept for 60 s and the clock was set forward by 60 s"


def test_the_real_clocks_agree_with_themselves() -> None:
    before = read()
    assert gap(before, read()) is None


async def test_each_gap_is_told_once() -> None:
    told: list[Gap] = []
    script: Iterator[Ticks] = iter(
        [START, Ticks(1_000_001.0, 501.0, 501.0), Ticks(1_003_601.0, 4101.0, 502.0), Ticks(1_003_602.0, 4102.0, 503.0)]
    )
    done = asyncio.Event()

    def clocks() -> Ticks:
        try:
            return next(script)
        except StopIteration:
            done.set()
            return Ticks(1_003_602.0, 4102.0, 503.0)

    task = asyncio.create_task(follow(told.append, clocks, 0.0))
    await asyncio.wait_for(done.wait(), 20)
    task.cancel()
    assert told == [Gap(3599.0, 0.0)]
