"""Prompt caching and billing arithmetic: pure."""

from __future__ import annotations

from typing import Any

import genai_prices
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.simulator import tokens
from harness.simulator.catalog import MODELS, Tokens, cost, find
from harness.simulator.errors import ApiError
from harness.simulator.prompt_cache import Block, PromptCache, blocks_of

MODEL = find("claude-sonnet-5-5")
BIG = "x" * 4000


def block(text: str, ttl: str | None = None) -> Block:
    return Block(text.encode(), ttl)


def test_writes_once_then_reads() -> None:
    cache = PromptCache()
    blocks = [block(BIG), block("tail" * 10, "5m"), block("fresh" * 4)]
    first = cache.account("k", MODEL, blocks, 0)
    assert first == Tokens(input=5, write_5m=1010)
    assert cache.account("k", MODEL, blocks, 1) == Tokens(input=5, cache_read=1010)
    assert cache.account("other key", MODEL, blocks, 1) == first
    assert cache.account("k", find("claude-opus-5-5"), blocks, 1) == first


def test_expires_and_is_refreshed_by_a_read() -> None:
    cache = PromptCache()
    blocks = [block(BIG, "5m")]
    assert cache.account("k", MODEL, blocks, 0).write_5m == 1000
    assert cache.account("k", MODEL, blocks, 299).cache_read == 1000
    assert cache.account("k", MODEL, blocks, 598).cache_read == 1000
    assert cache.account("k", MODEL, blocks, 899).write_5m == 1000


def test_longer_time_to_live() -> None:
    cache = PromptCache()
    blocks = [block(BIG, "1h"), block(BIG, "5m")]
    assert cache.account("k", MODEL, blocks, 0) == Tokens(write_1h=1000, write_5m=1000)
    assert cache.account("k", MODEL, blocks, 400) == Tokens(cache_read=1000, write_5m=1000)


def test_below_the_minimum_nothing_is_cached() -> None:
    cache = PromptCache()
    small = [block("y" * 4 * (MODEL.min_cache - 1), "5m")]
    assert cache.account("k", MODEL, small, 0) == Tokens(input=MODEL.min_cache - 1)
    assert not cache.entries


def test_growing_conversation_reads_its_old_prefix() -> None:
    cache = PromptCache()
    blocks = [block(BIG), block("turn 1", "5m")]
    cache.account("k", MODEL, blocks, 0)
    longer = [block(BIG), block("turn 1"), block("answer"), block("turn 2", "5m")]
    used = cache.account("k", MODEL, longer, 1)
    assert (used.cache_read, used.write_5m, used.input) == (1002, 4, 0)


def test_looks_back_twenty_blocks_only() -> None:
    cache = PromptCache()
    cache.account("k", MODEL, [block(BIG, "5m")], 0)
    near = [block(BIG), *(block(f"step {i}") for i in range(18)), block("end", "5m")]
    far = [block(BIG), *(block(f"other {i}") for i in range(19)), block("end", "5m")]
    assert cache.account("k", MODEL, near, 1).cache_read == 1000
    assert cache.account("k", MODEL, far, 1).cache_read == 0


def test_order_of_blocks_and_marks() -> None:
    body: dict[str, Any] = {
        "model": MODEL.id,
        "messages": [
            {"role": "user", "content": [{"type": "text", "text": "hi", "cache_control": {"type": "ephemeral"}}]}
        ],
        "system": "be good",
        "tools": [
            {"name": "t", "input_schema": {"type": "object"}, "cache_control": {"type": "ephemeral", "ttl": "1h"}}
        ],
    }
    blocks = blocks_of(body)
    assert [b.data.split(b" ")[0] for b in blocks] == [b"tool", b"system", b"user"]
    assert [b.ttl for b in blocks] == ["1h", None, "5m"]
    assert b"cache_control" not in b"".join(b.data for b in blocks)
    assert [
        b.ttl
        for b in blocks_of({"messages": [{"role": "user", "content": "hi"}], "cache_control": {"type": "ephemeral"}})
    ] == ["5m"]


@pytest.mark.parametrize("ttls", [["5m"] * 5, ["5m", "1h"]])
def test_refuses_bad_marks(ttls: list[str]) -> None:
    parts = [{"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": ttl}} for ttl in ttls]
    with pytest.raises(ApiError, match="cache_control"):
        blocks_of({"messages": [{"role": "user", "content": parts}]})


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 3000), st.booleans()), min_size=1, max_size=30),
    st.lists(st.floats(0, 900), max_size=4),
)
def test_tokens_are_neither_lost_nor_invented(sizes: list[tuple[int, bool]], times: list[float]) -> None:
    blocks = []
    left = 4
    for i, (size, marked) in enumerate(sizes):
        mark = "5m" if marked and left else None
        left -= mark is not None
        blocks.append(block(f"{i}".ljust(size, "z"), mark))
    total = sum(b.tokens for b in blocks)
    cache = PromptCache()
    now = 0.0
    for step in [0.0, *times]:
        now += step
        assert cache.account("k", MODEL, blocks, now).prompt == total


@given(st.text())
def test_never_more_than_a_token_a_byte(text: str) -> None:
    size = len(text.encode("utf-8", "replace"))
    assert tokens.of_text(text) <= size
    assert text.startswith(tokens.cut(text, 3)) or not text.isprintable() or "?" in tokens.cut(text, 3)
    assert tokens.of_text(tokens.cut(text, 3)) <= 3


@pytest.mark.parametrize("model", sorted(MODELS))
def test_list_prices_agree_with_the_public_price_data(model: str) -> None:
    used = Tokens(input=2000, cache_read=14_000, write_5m=3000, output=2000)
    usage = genai_prices.Usage(
        input_tokens=used.prompt,
        cache_read_tokens=used.cache_read,
        cache_write_tokens=used.write_5m,
        output_tokens=used.output,
    )
    public = genai_prices.calc_price(usage, model, provider_id="anthropic").total_price
    assert cost(find(model), used) == round(public * 1_000_000_000)


def test_long_prompts_of_the_small_model_cost_five_times_as_much() -> None:
    haiku = find("claude-haiku-5-5")
    assert cost(haiku, Tokens(input=100_000)) == 10_000_000
    assert cost(haiku, Tokens(input=100_001)) == 5 * 100_001 * 100
