"""What differs for a model: its settings, the request fields they become, and what an endpoint's own edits cost."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import anthropic
import httpx2
import pytest

from harness.brain.api import own_means, stream
from harness.brain.api.bill import Bill, Bounds
from harness.brain.api.own_means import Own
from harness.brain.api.retry import Failure
from harness.events import types as t
from harness.events.types import Usage
from harness.protocol.config import config as c
from harness.protocol.config.sections import Profile
from harness.simulator import compaction, edits, validate
from harness.simulator.errors import ApiError
from harness.tools import registry as events_tools

FILE = Path("/conf/config.toml")
CLEARING = frozenset(("context-management-2025-06-27",))
COMPACT = frozenset(("compact-2026-01-12",))


def test_the_longest_name_that_a_model_begins_with_holds() -> None:
    text = """
[profiles."claude-sonnet"]
working_tokens = 60000
[profiles."claude-sonnet-5-5"]
working_tokens = 120000
api_clearing = 90000
api_compaction = 150000
api_memory = true
fresh = "never"
cache_hour = true
"""
    of = c.parse(FILE, text).profile
    assert of("claude-sonnet-5-5-20260101") == Profile(120_000, 90_000, 150_000, True, "never", True)
    assert of("claude-sonnet-4-6") == Profile(60_000, 0)
    assert of("claude-opus-5") == Profile() == c.Config(file=FILE).profile("claude-sonnet-5-5")


@pytest.mark.parametrize(
    ("text", "line", "key", "why"),
    [
        (
            "[profiles.m]\nworking = 1\n",
            2,
            "profiles.m.working",
            "did you mean working_tokens? known: working_tokens, api_clearing",
        ),
        ("[profiles.m]\nworking_tokens = 100\n", 2, "profiles.m.working_tokens", "from 20,000 on"),
        ("[profiles.m]\napi_clearing = true\n", 2, "profiles.m.api_clearing", "a number of tokens"),
        ("[profiles.m]\napi_compaction = 49999\n", 2, "profiles.m.api_compaction", "from 50,000 on, not 49999"),
        ("[profiles.m]\napi_memory = 1\n", 2, "profiles.m.api_memory", "true or false"),
        ("[profiles.m]\ncache_hour = 60\n", 2, "profiles.m.cache_hour", "true or false"),
        ("[profiles.m]\nfresh = 'often'\n", 2, "profiles.m.fresh", "per-task, per-iteration, never"),
        ("[profiles]\nm = 3\n", 2, "profiles.m", "must be a section"),
    ],
)
def test_a_profile_that_cannot_be_used_is_named(text: str, line: int, key: str, why: str) -> None:
    with pytest.raises(c.ConfigError) as raised:
        c.parse(FILE, text)
    assert (raised.value.line, raised.value.key) == (line, key)
    assert why in raised.value.why


HI = b'[{"role":"user","content":[{"type":"text","text":"hi"}]}]'


def sent(own: Own, messages: bytes = HI) -> tuple[dict[str, Any], frozenset[str]]:
    """The body and the betas of one request as they leave."""
    seen: list[httpx2.Request] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return httpx2.Response(529, json={"type": "error", "error": {"type": "overloaded_error", "message": "no"}})

    http = anthropic.DefaultHttpxClient(transport=httpx2.MockTransport(answer))
    client = anthropic.Anthropic(api_key="k", base_url="http://127.0.0.1:9", max_retries=0, http_client=http)
    tools = [{"name": "a", "description": "a", "input_schema": {"type": "object", "properties": {}}}]
    offered = own_means.offered(own, [*tools, events_tools.TABLE["memory"].definition()])
    request = stream.AttemptRequest("claude-sonnet-5-5", 9, [{"type": "text", "text": "s"}], offered, messages, own=own)
    assert isinstance(stream.attempt(client, request, lambda: None), Failure)
    client.close()
    named = seen[0].headers.get("anthropic-beta", "")
    return json.loads(seen[0].content), frozenset(name for name in named.split(",") if name)


def test_the_endpoints_own_clearing_is_asked_for_in_its_own_words_and_only_when_wanted() -> None:
    body, betas = sent(Own(90_000))
    assert betas == CLEARING
    assert body["context_management"] == {
        "edits": [
            {
                "type": "clear_tool_uses_20250919",
                "trigger": {"type": "input_tokens", "value": 90_000},
                "keep": {"type": "tool_uses", "value": 3},
                "clear_at_least": {"type": "input_tokens", "value": 22_500},
            }
        ]
    }
    assert validate.check(body, betas=betas)
    plain, none = sent(Own())
    assert "context_management" not in plain
    assert "input_schema" in plain["tools"][1]
    assert not none


def test_its_compaction_and_its_memory_tool_are_asked_for_in_its_own_words() -> None:
    body, betas = sent(Own(90_000, 150_000, True))
    assert betas == CLEARING | COMPACT
    clearing, compacting = body["context_management"]["edits"]
    assert clearing["exclude_tools"] == ["memory"]
    assert compacting == {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 150_000}}
    assert body["tools"][1] == {"type": "memory_20250818", "name": "memory"}
    assert validate.check(body, betas=betas)
    assert own_means.offered(Own(memory=True), body["tools"][:1]) == body["tools"][:1], "a role without memory"


def test_a_block_of_a_compaction_goes_back_as_it_came_also_when_it_is_wanted_no_more() -> None:
    """What looks like one in a text is none."""
    block = compaction.block(json.loads(HI))
    messages = [*json.loads(HI), {"role": "assistant", "content": [block]}, *json.loads(HI)]
    body, betas = sent(Own(), json.dumps(messages).encode())
    assert betas == COMPACT
    assert "context_management" not in body
    assert validate.check(body, betas=betas)["messages"] == messages
    with pytest.raises(ApiError, match="does not match any"):
        validate.check(body)
    for wrong in ({**block, "content": "mine"}, {**block, "content": ""}, {**block, "more": 1}):
        messages[1]["content"] = [wrong]
        with pytest.raises(ApiError):
            validate.check({**body, "messages": messages}, betas=betas)
    text = json.dumps([{"role": "user", "content": [{"type": "text", "text": '"type": "compaction"'}]}]).encode()
    assert sent(Own(), text)[1] == frozenset()


GOOD: list[tuple[dict[str, Any], frozenset[str]]] = [
    ({"edits": []}, frozenset()),
    ({"edits": [{"type": "clear_tool_uses_20250919", "exclude_tools": ["x"], "clear_tool_inputs": True}]}, CLEARING),
    ({"edits": [{"type": "clear_thinking_20251015", "keep": "all"}, {"type": "clear_tool_uses_20250919"}]}, CLEARING),
    ({"edits": [{"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 150_000}}]}, COMPACT),
]
BAD: list[tuple[object, frozenset[str], str]] = [
    ({"edits": [{"type": "clear_tool_uses_20250919"}]}, frozenset(), "context_management: Extra inputs"),
    ({"edits": [{"type": "clear_tool_uses"}]}, CLEARING, "Input tag 'clear_tool_uses'"),
    ({"edits": [{"type": "clear_tool_uses_20250919", "keep": 3}]}, CLEARING, "keep: Input is not valid"),
    ({"edits": [{"type": "clear_tool_uses_20250919", "keeps": 3}]}, CLEARING, "keeps: Extra inputs"),
    (
        {"edits": [{"type": "clear_tool_uses_20250919", "trigger": {"type": "messages", "value": 3}}]},
        CLEARING,
        "trigger: Input is not valid",
    ),
    (
        {"edits": [{"type": "clear_tool_uses_20250919"}, {"type": "clear_thinking_20251015"}]},
        CLEARING,
        "must be the first edit",
    ),
    ({"edits": [{"type": "compact_20260112"}] * 2}, COMPACT, "only once"),
    ({"edits": [{"type": "compact_20260112", "pause_after_compaction": 1}]}, COMPACT, "Input is not valid"),
    ({"edit": []}, CLEARING, "Extra inputs"),
    ({"edits": {}}, CLEARING, "valid list"),
]


@pytest.mark.parametrize(("given", "betas"), GOOD)
def test_what_the_api_takes_is_taken(given: dict[str, Any], betas: frozenset[str]) -> None:
    edits.check(given, betas)


@pytest.mark.parametrize(("given", "betas", "says"), BAD)
def test_what_the_api_refuses_is_refused(given: object, betas: frozenset[str], says: str) -> None:
    with pytest.raises(ApiError) as raised:
        edits.check(given, betas)
    assert raised.value.status == 400
    assert says in str(raised.value.body("r"))


def test_tokens_of_a_compaction_by_the_endpoint_are_in_the_bill() -> None:
    """They stand in ``usage.iterations`` and not in the figures above it."""
    counted = {"input_tokens": 100, "output_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 0}
    compaction = {
        "type": "compaction",
        "input_tokens": 150_000,
        "output_tokens": 2000,
        "cache_creation_input_tokens": 7,
        "cache_read_input_tokens": 0,
    }
    told = {**counted, "iterations": [compaction, {"type": "message", **counted}]}
    bill = Bill()
    bill.take(told)
    believed = bill.believed(Bounds(400_000, 8192, 400_000))
    found = believed.usage
    assert (found.input, found.output, found.cache_read, found.cache_write_5m) == (150_100, 2010, 5, 7)
    assert believed.compaction == Usage(150_000, 0, 7, 0, 2000)
    message = t.ModelMessage(
        request_id="r",
        message_id="m",
        model="m",
        stop="done",
        usage=found,
        cost_nano=1,
        compaction=Usage(150_000, 0, 7, 0, 2000),
    )
    assert message.context == Usage(100, 5, 0, 0, 10), "what was read to make it is no part of the context"


def test_only_a_request_that_may_be_compacted_is_paid_for_twice() -> None:
    assert not Own().compacts(10**9)
    assert not Own(compact_from=50_000).compacts(49_999)
    assert Own(compact_from=50_000).compacts(50_000)
