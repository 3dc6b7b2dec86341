"""Prices in exact integers, rounded up; unknown models cost the dearest known price and say so."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.budget.prices import cost, lookup, worst_case
from harness.budget.rates import DEAREST
from harness.events.types import Usage

DAY = date(2026, 11, 21)
MODELS = [
    "claude-opus-5-5",
    "claude-sonnet-5-5",
    "claude-haiku-5-5",
    "claude-haiku-4-5",
    "claude-fable-5-2",
    "no-such-model",
]
TOKENS = st.integers(0, 400_000)
USAGE = st.builds(Usage, TOKENS, TOKENS, TOKENS, TOKENS, TOKENS)


def test_the_worked_example_with_all_kinds_of_tokens() -> None:
    assert cost("claude-opus-5-5", Usage(2000, 140_000, 3000, 5000, 2000), DAY).nano == 131_000_000


@pytest.mark.parametrize(
    ("tokens", "nano", "cached"), [(100_000, 10_000_000, 100 + 10 * 99_999), (100_001, 50_000_500, 500 + 50 * 100_000)]
)
def test_above_the_threshold_every_token_costs_the_long_prompt_price(tokens: int, nano: int, cached: int) -> None:
    assert cost("claude-haiku-5-5", Usage(input=tokens), DAY).nano == nano
    assert cost("claude-haiku-5-5", Usage(input=1, cache_read=tokens - 1), DAY).nano == cached


def test_a_dated_price_follows_the_day() -> None:
    assert (
        lookup("claude-sonnet-4-6", date(2026, 3, 1)).rates(300_000).input
        > lookup("claude-sonnet-4-6", DAY).rates(300_000).input
    )


@pytest.mark.parametrize("model", ["no-such-model", "", "claude-opus-99"])
def test_an_unknown_model_costs_at_least_every_known_one(model: str) -> None:
    price = lookup(model, DAY)
    assert not price.known
    assert price.source.startswith(DEAREST)
    for known in MODELS[:-1]:
        for tokens in (1, 500_000):
            assert cost(model, Usage(tokens, 1, 1, 1, 1), DAY).nano >= cost(known, Usage(tokens, 1, 1, 1, 1), DAY).nano


@given(st.sampled_from(MODELS[:-1]), USAGE)
def test_arithmetic_agrees_with_the_library_and_never_rounds_down(model: str, u: Usage) -> None:
    from genai_prices import Usage as Theirs
    from genai_prices import calc_price

    whole = u.input + u.cache_read + u.cache_write_5m + u.cache_write_1h
    theirs = Theirs(
        input_tokens=whole,
        cache_read_tokens=u.cache_read,
        cache_write_tokens=u.cache_write_5m + u.cache_write_1h,
        cache_write_1h_tokens=u.cache_write_1h,
        output_tokens=u.output,
    )
    exact = calc_price(theirs, model, provider_id="anthropic").total_price * Decimal(10**9)
    assert 0 <= cost(model, u).nano - exact < 1


@given(st.sampled_from(MODELS), st.integers(0, 400_000), st.integers(0, 64_000), st.data())
def test_no_request_within_its_estimate_costs_more_than_its_worst_case(
    model: str, room: int, max_tokens: int, data: st.DataObject
) -> None:
    left = room
    parts = []
    for _ in range(3):
        parts.append(data.draw(st.integers(0, left)))
        left -= parts[-1]
    real = Usage(parts[0], parts[1], parts[2], 0, data.draw(st.integers(0, max_tokens)))
    worst = worst_case(model, room, max_tokens, DAY)
    assert cost(model, real, DAY).nano <= worst.nano
    assert real.total <= worst.tokens
