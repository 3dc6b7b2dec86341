"""The list prices of ``genai-prices``, and the program that reads them for a process which is to stay small:
``python -m harness.budget.price_list MODEL DAY`` prints a `Price` as JSON.
"""

from __future__ import annotations

import functools
import sys
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib.metadata import version
from typing import Any

import msgspec
from genai_prices.data_snapshot import get_snapshot

from harness.budget.rates import DEAREST, Price, Rates

VENDOR = "anthropic"
_PICO_PER_TOKEN = Decimal(1_000_000)


def _pico(price: Decimal | None, missing: int) -> int:
    if price is None:
        return missing
    scaled = price * _PICO_PER_TOKEN
    whole = int(scaled)
    return whole if whole == scaled else whole + 1


def _at(price: Any, start: int) -> Decimal | None:
    """The price that holds above ``start`` input tokens."""
    if price is None or isinstance(price, Decimal):
        return price
    found: Decimal = price.base
    for tier in price.tiers:
        if start >= tier.start:
            found = tier.price
    return found


def _tiers(prices: Any) -> tuple[tuple[int, Rates], ...]:
    named = {
        key: getattr(prices, f"{key}_mtok")
        for key in ("input", "cache_read", "cache_write", "cache_write_1h", "output")
    }
    starts = {0} | {
        tier.start
        for price in named.values()
        if price is not None and not isinstance(price, Decimal)
        for tier in price.tiers
    }
    made: list[tuple[int, Rates]] = []
    for start in sorted(starts):
        value = {key: _at(price, start) for key, price in named.items()}
        plain = _pico(value["input"], 0)
        short = _pico(value["cache_write"], plain)
        made.append(
            (
                start,
                Rates(
                    plain,
                    _pico(value["cache_read"], plain),
                    short,
                    _pico(value["cache_write_1h"], max(short, 2 * plain)),
                    _pico(value["output"], 0),
                ),
            )
        )
    return tuple(made)


@functools.cache
def _dearest(day: date) -> Rates:
    found = Rates(0, 0, 0, 0, 0)
    for provider in get_snapshot().providers:
        if provider.id == VENDOR:
            for model in provider.models:
                for _, rates in _tiers(model.get_prices(datetime(day.year, day.month, day.day, tzinfo=UTC))):
                    found = found.most(rates)
    return found


@functools.cache
def read(model: str, day: date) -> Price:
    """What the list says of a model on a day (UTC); the dearest rates of the vendor where it says nothing."""
    table = f"genai-prices {version('genai-prices')}"
    try:
        _, info = get_snapshot().find_provider_model(model, None, VENDOR, None)
        tiers = _tiers(info.get_prices(datetime(day.year, day.month, day.day, tzinfo=UTC)))
    except LookupError:
        tiers = ()
    if not tiers or not all(rates.input and rates.output for _, rates in tiers):
        return Price(model, f"{DEAREST} ({table})", False, ((0, _dearest(day)),))
    return Price(model, table, True, tiers)


def main() -> int:
    """Print the price of the model and the day that the command line names."""
    model, day = sys.argv[1:]
    sys.stdout.buffer.write(msgspec.json.encode(read(model, date.fromisoformat(day))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
