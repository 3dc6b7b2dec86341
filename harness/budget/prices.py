"""What tokens cost, in exact integers: list prices of ``genai-prices``, nano-USD rounded up, never guessed downwards.

Rates are pico-USD per token (a price of 1 USD per million tokens is 1,000,000). An unknown model costs, part by part,
what the dearest known model of the vendor costs, and its price source says so.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from importlib.metadata import version
from typing import Any

from harness.events.types import Usage

VENDOR = "anthropic"
DEAREST = "dearest known"
_PICO_PER_NANO = 1000
_PICO_PER_TOKEN = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class Rates:
    """Pico-USD per token, by kind."""

    input: int
    cache_read: int
    cache_write_5m: int
    cache_write_1h: int
    output: int

    def most(self, other: Rates) -> Rates:
        """The dearer of both, part by part."""
        return Rates(
            max(self.input, other.input),
            max(self.cache_read, other.cache_read),
            max(self.cache_write_5m, other.cache_write_5m),
            max(self.cache_write_1h, other.cache_write_1h),
            max(self.output, other.output),
        )


@dataclass(frozen=True, slots=True)
class Price:
    """Rates of one model.

    ``tiers`` are (more than this many input tokens, rates for every token), ascending, the first from 0.
    """

    model: str
    source: str
    known: bool
    tiers: tuple[tuple[int, Rates], ...]

    def rates(self, input_tokens: int) -> Rates:
        """The rates of a prompt with that many input tokens, cached ones included."""
        found = self.tiers[0][1]
        for start, rates in self.tiers[1:]:
            if input_tokens > start:
                found = rates
        return found


@dataclass(frozen=True, slots=True)
class Cost:
    """An amount in nano-USD, the tokens behind it, and where the price came from."""

    nano: int
    tokens: int
    source: str


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
    from genai_prices.data_snapshot import get_snapshot

    found = Rates(0, 0, 0, 0, 0)
    for provider in get_snapshot().providers:
        if provider.id == VENDOR:
            for model in provider.models:
                for _, rates in _tiers(model.get_prices(datetime(day.year, day.month, day.day, tzinfo=UTC))):
                    found = found.most(rates)
    return found


@functools.cache
def _lookup(model: str, day: date) -> Price:
    from genai_prices.data_snapshot import get_snapshot

    table = f"genai-prices {version('genai-prices')}"
    try:
        _, info = get_snapshot().find_provider_model(model, None, VENDOR, None)
        tiers = _tiers(info.get_prices(datetime(day.year, day.month, day.day, tzinfo=UTC)))
    except LookupError:
        tiers = ()
    if not tiers or not all(rates.input and rates.output for _, rates in tiers):
        return Price(model, f"{DEAREST} ({table})", False, ((0, _dearest(day)),))
    return Price(model, table, True, tiers)


def lookup(model: str, day: date | None = None) -> Price:
    """List price of ``model`` on ``day`` (UTC, default today).

    Never fails: an unknown model gets the dearest known rates.
    """
    return _lookup(model, day or datetime.now(UTC).date())


def _nano(pico: int) -> int:
    return -(-pico // _PICO_PER_NANO)


def cost(model: str, usage: Usage, day: date | None = None) -> Cost:
    """What a finished request cost.

    ``usage.input`` excludes cache reads and writes; the tier goes by all of them together.
    """
    price = lookup(model, day)
    r = price.rates(usage.input + usage.cache_read + usage.cache_write_5m + usage.cache_write_1h)
    pico = (
        usage.input * r.input
        + usage.cache_read * r.cache_read
        + usage.cache_write_5m * r.cache_write_5m
        + usage.cache_write_1h * r.cache_write_1h
        + usage.output * r.output
    )
    return Cost(_nano(pico), usage.total, price.source)


def worst_case(
    model: str, est_input: int, max_tokens: int, day: date | None = None, *, hour_writes: bool = False
) -> Cost:
    """The most a request can cost: every input token at the dearest of its input rates, every allowed output token
    written.

    ``hour_writes`` says that the request asks for cache entries that live an hour, which are dearer still.
    """
    if est_input < 0 or max_tokens < 0:
        raise ValueError("token counts are not negative")
    price = lookup(model, day)
    r = price.rates(est_input)
    dearest_input = max(r.input, r.cache_read, r.cache_write_5m, r.cache_write_1h if hour_writes else 0)
    return Cost(_nano(est_input * dearest_input + max_tokens * r.output), est_input + max_tokens, price.source)
