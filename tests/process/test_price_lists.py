"""A supervisor knows its prices without the library that lists them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from datetime import date, timedelta

import pytest

from harness.budget import price_list, prices
from harness.supervisor.money.price_lists import PriceLists

_SCRIPT = """
import asyncio, json, sys
from harness.budget import prices
from harness.supervisor.money.price_lists import PriceLists

async def fetched(models):
    lists = PriceLists()
    await asyncio.gather(*(lists.fetch(model) for model in models * 2))

models = json.loads(sys.argv[1])
asyncio.run(fetched(models))
found = [[prices.at_hand(model), prices.lookup(model).source] for model in models]
print(json.dumps([found, sorted({name.split(".")[0] for name in sys.modules} & {"genai_prices", "pydantic"})]))
"""


def test_prices_are_known_without_the_library_that_lists_them() -> None:
    models = ["claude-haiku-5-5", "no-such-model", "--help", "", "two words"]
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, json.dumps(models)], capture_output=True, text=True, check=True, timeout=120
    )
    found, loaded = json.loads(done.stdout)
    assert found == [[True, price_list.read(model, prices.today()).source] for model in models]
    assert loaded == []


def test_a_name_that_no_program_can_be_given_is_looked_up_here() -> None:
    asyncio.run(PriceLists().fetch("a\0b"))
    assert not prices.at_hand("a\0b")
    assert not prices.lookup("a\0b").known


def test_a_new_day_has_its_prices_before_the_first_bill(monkeypatch: pytest.MonkeyPatch) -> None:
    eve = date(2031, 12, 31)

    async def over_midnight() -> None:
        monkeypatch.setattr(prices, "today", lambda: eve)
        lists = PriceLists()
        await lists.fetch("claude-haiku-5-5")
        monkeypatch.setattr(prices, "today", lambda: eve + timedelta(days=1))
        assert not prices.at_hand("claude-haiku-5-5")
        await lists.renew()

    asyncio.run(over_midnight())
    assert prices.at_hand("claude-haiku-5-5")
    assert prices.lookup("claude-haiku-5-5") == price_list.read("claude-haiku-5-5", eve + timedelta(days=1))
