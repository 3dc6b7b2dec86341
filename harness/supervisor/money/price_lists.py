"""List prices without the list: a program of its own reads it, whose library would stay in the supervisor's memory."""

from __future__ import annotations

import asyncio
import contextlib
from datetime import date

import msgspec

from harness.budget import prices
from harness.budget.rates import Price
from harness.supervisor.processes.programs import printed

_PATIENCE_S = 20.0


class PriceLists:
    """Has `prices` know what is asked for next. Where the program fails, `prices` reads the list itself."""

    def __init__(self) -> None:
        self._models: set[str] = set()
        self._reading: dict[tuple[str, date], asyncio.Task[None]] = {}

    async def fetch(self, model: str) -> None:
        """Have the price of this model at hand, if need be; never fails."""
        self._models.add(model)
        await self._read(model, prices.today())

    async def renew(self) -> None:
        """Have the prices of all models that were asked for at hand, on a new day too."""
        day = prices.today()
        for model in [model for model in self._models if not prices.at_hand(model, day)]:
            await self._read(model, day)

    async def _read(self, model: str, day: date) -> None:
        if prices.at_hand(model, day):
            return
        task = self._reading.get((model, day))
        if task is None:
            task = asyncio.create_task(_learn(model, day))
            self._reading[model, day] = task
            task.add_done_callback(lambda _: self._reading.pop((model, day), None))
        await asyncio.shield(task)


async def _learn(model: str, day: date) -> None:
    with contextlib.suppress(OSError, ValueError, TimeoutError, msgspec.DecodeError):
        prices.learn(await _asked(model, day), day)


async def _asked(model: str, day: date) -> Price:
    out = await printed("harness.budget.price_list", model, day.isoformat(), within_s=_PATIENCE_S)
    found = msgspec.json.decode(out, type=Price)
    if found.model != model:
        raise ValueError(f"asked for the price of {model!r} and told of {found.model!r}")
    return found
