"""What tokens cost, in exact integers: list prices of ``genai-prices``, nano-USD rounded up, never guessed downwards.

Rates are pico-USD per token (a price of 1 USD per million tokens is 1,000,000). An unknown model costs, part by part,
what the dearest known model of the vendor costs, and its price source says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime

from harness.budget.rates import Price
from harness.events.types import Usage

_PICO_PER_NANO = 1000


@dataclass(frozen=True, slots=True)
class Cost:
    """An amount in nano-USD, the tokens behind it, and where the price came from."""

    nano: int
    tokens: int
    source: str


_at_hand: dict[tuple[str, date], Price] = {}


def learn(price: Price, day: date) -> None:
    """Keep a price that was read elsewhere for that day (UTC), so that `lookup` need not read the list here."""
    _at_hand[price.model, day] = price


def at_hand(model: str, day: date | None = None) -> bool:
    """True when `lookup` answers from memory."""
    return (model, day or today()) in _at_hand


def today() -> date:
    """The day by which prices go (UTC)."""
    return datetime.now(UTC).date()


def lookup(model: str, day: date | None = None) -> Price:
    """List price of ``model`` on ``day`` (UTC, default today).

    Never fails: an unknown model gets the dearest known rates. The first look at a model and a day reads the list,
    which stays loaded: 20 MB, and a tenth of a second.
    """
    wanted = day or today()
    found = _at_hand.get((model, wanted))
    if found is None:
        from harness.budget import price_list

        found = price_list.read(model, wanted)
        learn(found, wanted)
    return found


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
