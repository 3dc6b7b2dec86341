"""The service through the real SDK and over plain HTTP."""

from __future__ import annotations

import http.client
import json
import time
import urllib.parse
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx2
import pytest

from tests.unit.simulator_process import KEY, TOOLS, Simulator, running

TURNS = [
    {"text": "Two at once.", "thinking": "Hm.", "calls": [["exec", {"argv": ["echo", "ü" * 90]}], ["list_files", {}]]},
    {"text": "Done. " * 30},
]
GOAL = f"play it\n```sim\n{json.dumps(TURNS)}\n```"


@pytest.fixture(scope="module")
def sim() -> Iterator[Simulator]:
    with running() as simulator:
        yield simulator


def ask(sim: Simulator, goal: str = GOAL, *, key: str = KEY, **more: Any) -> anthropic.types.beta.BetaMessage:
    with sim.client(key).beta.messages.stream(
        **{
            "model": "claude-sonnet-5-5",
            "max_tokens": 1000,
            "messages": [{"role": "user", "content": goal}],
            "tools": TOOLS,
            **more,
        }
    ) as stream:
        return stream.get_final_message()


def raw(sim: Simulator, method: str, path: str, body: bytes = b"", **headers: str) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection(urllib.parse.urlsplit(sim.url).netloc, timeout=10)
    connection.request(
        method,
        path,
        body,
        {"x-api-key": KEY, "anthropic-version": "2023-06-01", **{k.replace("_", "-"): v for k, v in headers.items()}},
    )
    reply = connection.getresponse()
    return reply.status, {k.lower(): v for k, v in reply.getheaders()}, reply.read()


def test_stream_has_the_vendors_order(sim: Simulator) -> None:
    body = {
        "model": "claude-sonnet-5-5",
        "max_tokens": 1000,
        "messages": [{"role": "user", "content": GOAL}],
        "tools": TOOLS,
        "stream": True,
    }
    status, headers, data = raw(sim, "POST", "/v1/messages?beta=true", json.dumps(body).encode())
    assert status == 200
    assert headers["content-type"].startswith("text/event-stream")
    assert headers["request-id"].startswith("req_")
    assert int(headers["anthropic-ratelimit-requests-remaining"]) < int(
        headers["anthropic-ratelimit-requests-limit"]
    ), "this one was counted"
    events = [json.loads(part.split(b"data: ", 1)[1]) for part in data.strip().split(b"\n\n")]
    kinds = [e["type"] for e in events]
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert "ping" in kinds
    open_block = None
    seen = []
    for event in events:
        if event["type"] == "content_block_start":
            assert open_block is None
            open_block = event["index"]
            seen.append(event["content_block"]["type"])
        elif event["type"] == "content_block_delta":
            assert event["index"] == open_block
        elif event["type"] == "content_block_stop":
            assert event["index"] == open_block
            open_block = None
    assert seen == ["thinking", "text", "tool_use", "tool_use"]
    parts = [e["delta"]["partial_json"] for e in events if e["type"] == "content_block_delta" and e["index"] == 2]
    assert len(parts) > 2
    assert json.loads("".join(parts)) == {"argv": ["echo", "ü" * 90]}
    assert events[-2]["delta"]["stop_reason"] == "tool_use"
    assert events[-2]["usage"]["output_tokens"] > 40


def test_the_sdk_reads_the_same_with_and_without_streaming(sim: Simulator) -> None:
    streamed = ask(sim)
    whole = sim.client().messages.create(
        model="claude-sonnet-5-5", max_tokens=1000, messages=[{"role": "user", "content": GOAL}], tools=TOOLS
    )  # type: ignore[arg-type]
    assert [b.to_dict() for b in streamed.content] == [b.to_dict() for b in whole.content]
    assert (streamed.stop_reason, streamed.id, streamed.usage.output_tokens) == (
        whole.stop_reason,
        whole.id,
        whole.usage.output_tokens,
    )


def test_output_limit_cuts_a_tool_call_short(sim: Simulator) -> None:
    reply = ask(sim, max_tokens=30)
    assert reply.stop_reason == "max_tokens"
    assert reply.usage.output_tokens <= 30


def test_caching_and_the_bill(sim: Simulator) -> None:
    system = [{"type": "text", "text": "Rules. " * 500, "cache_control": {"type": "ephemeral", "ttl": "1h"}}]
    with running("--key", "k2") as own:
        first, second = (ask(own, key="k2", system=system).usage for _ in range(2))
        report = own.control("usage")
    assert first.cache_read_input_tokens == 0
    assert first.cache_creation is not None
    assert first.cache_creation.ephemeral_1h_input_tokens == first.cache_creation_input_tokens > 800
    assert second.cache_read_input_tokens == first.cache_creation_input_tokens
    assert second.input_tokens == first.input_tokens
    expected = sum(
        u.input_tokens * 2000
        + (u.cache_creation_input_tokens or 0) * 4000
        + (u.cache_read_input_tokens or 0) * 100
        + u.output_tokens * 10_000
        for u in (first, second)
    )
    assert report["keys"]["k2"]["nano"] == report["total"]["nano"] == expected
    assert report["conversations"][0]["scenario"] == "scripted"


def test_counting_tokens_agrees_with_the_bill(sim: Simulator) -> None:
    messages: Any = [{"role": "user", "content": GOAL}]
    counted = sim.client().messages.count_tokens(
        model="claude-sonnet-5-5", messages=messages, tools=TOOLS, system="be good"
    )  # type: ignore[arg-type]
    assert counted.input_tokens == ask(sim, system="be good").usage.input_tokens


def test_models_and_root(sim: Simulator) -> None:
    client = sim.client()
    listed = client.beta.models.list().data
    one = client.beta.models.retrieve(listed[0].id)
    assert one.capabilities is not None
    assert (one.max_input_tokens, one.max_tokens, one.lifecycle) == (1_000_000, 128_000, "active")
    with pytest.raises(anthropic.NotFoundError):
        client.models.retrieve("claude-nonesuch")
    assert raw(sim, "HEAD", "/")[0] == raw(sim, "GET", "/")[0] == 200
    assert raw(sim, "GET", "/v2/nothing")[0] == 404


def test_keys(sim: Simulator) -> None:
    with pytest.raises(anthropic.AuthenticationError, match="invalid x-api-key"):
        ask(sim, key="wrong")
    with pytest.raises(anthropic.NotFoundError):
        ask(sim, model="claude-nonesuch")
    assert raw(sim, "POST", "/v1/messages", b"{}", anthropic_version="")[0] == 400
    assert raw(sim, "POST", "/v1/messages", b"{broken")[0] == 400
    assert raw(sim, "GET", "/v1/models", authorization=f"Bearer {KEY}", x_api_key="")[0] == 200


@pytest.mark.parametrize(
    ("fault", "status"),
    [
        ({"kind": "overloaded"}, 529),
        ({"kind": "rate_limit", "retry_after": 7}, 429),
        ({"kind": "auth"}, 401),
        ({"kind": "server"}, 500),
        ({"kind": "status", "status": 418}, 418),
    ],
)
def test_errors_on_demand(sim: Simulator, fault: dict[str, Any], status: int) -> None:
    sim.control("faults", {**fault, "skip": 1})
    ask(sim)
    with pytest.raises(anthropic.APIStatusError) as caught:
        ask(sim)
    assert caught.value.status_code == status
    assert caught.value.response.headers.get("retry-after") == ("7" if status == 429 else None)
    assert caught.value.request_id is not None
    ask(sim)


def test_error_inside_the_stream(sim: Simulator) -> None:
    sim.control("faults", {"kind": "stream_error", "after_bytes": 900, "times": 1, "goal": "play it"})
    with pytest.raises(anthropic.APIStatusError) as caught:
        ask(sim)
    assert caught.value.status_code == 200
    assert "overloaded_error" in str(caught.value.body)


@pytest.mark.parametrize("after", [0, 1, 700, 2000])
def test_cut_after_bytes(sim: Simulator, after: int) -> None:
    before = sim.control("usage")["total"]
    sim.control("faults", {"kind": "cut", "after_bytes": after})
    with pytest.raises((httpx2.HTTPError, anthropic.APIConnectionError, RuntimeError, AssertionError)):
        ask(sim)
    deadline = time.monotonic() + 10
    while (now := sim.control("usage")["total"])["requests"] == before["requests"]:
        assert time.monotonic() < deadline, "a cut stream was never billed"
    assert now["nano"] > before["nano"]


@pytest.mark.parametrize(
    ("fault", "short", "long"),
    [
        ({"kind": "stall", "after_bytes": 600}, {"seconds": 0.01}, {"seconds": 60}),
        ({"kind": "stall", "after_bytes": 600}, {"seconds": 0.01}, {}),
        ({"kind": "trickle", "after_bytes": 1000}, {"rate": 5000}, {"rate": 0.1}),
    ],
)
def test_stall_and_trickle(sim: Simulator, fault: dict[str, Any], short: dict[str, Any], long: dict[str, Any]) -> None:
    """A short one is sat out; in a long one the client gives up waiting for the next byte."""
    sim.control("faults", [fault | short, fault | long])
    assert ask(sim).stop_reason == "tool_use"
    with pytest.raises((anthropic.APITimeoutError, httpx2.TimeoutException)):
        ask(sim, timeout=0.3)


def test_hold_and_release(sim: Simulator) -> None:
    sim.control("hold", {})
    with pytest.raises((anthropic.APITimeoutError, httpx2.TimeoutException)):
        ask(sim, timeout=0.3)
    sim.control("release", {})
    assert ask(sim).stop_reason == "tool_use"


def test_faults_of_a_turn_strike_each_attempt_once(sim: Simulator) -> None:
    turns = [{"text": "At last.", "faults": [{"kind": "overloaded"}, {"kind": "rate_limit", "retry_after": 1}]}]
    goal = f"```sim\n{json.dumps(turns)}\n```"
    for status in (529, 429):
        with pytest.raises(anthropic.APIStatusError) as caught:
            ask(sim, goal)
        assert caught.value.status_code == status
    assert ask(sim, goal).stop_reason == "end_turn"


def test_bad_faults_are_refused(sim: Simulator) -> None:
    for bad in (
        {"kind": "gremlins"},
        {"kind": "cut", "after_bytes": -1},
        {"kind": "status"},
        {"kind": "cut", "goal": "("},
        {"kind": "cut", "x": 1},
        [],
    ):
        body = json.dumps(bad if bad else [3]).encode()
        status, _, text = raw(sim, "POST", "/_sim/faults", body)
        assert (status, json.loads(text)["error"]["type"]) == (400, "invalid_request_error")


def test_rate_limit_of_a_minute() -> None:
    with running("--requests-per-minute", "2") as limited:
        ask(limited)
        ask(limited)
        with pytest.raises(anthropic.RateLimitError) as caught:
            ask(limited)
        assert 1 <= int(caught.value.response.headers["retry-after"]) <= 61
        assert caught.value.response.headers["anthropic-ratelimit-requests-remaining"] == "0"
        statuses = [r["status"] for r in limited.control("requests")["requests"]]
        assert statuses == [200, 200, 429]


def test_a_tool_that_was_not_offered_is_not_used(sim: Simulator) -> None:
    reply = ask(sim, tools=[t for t in TOOLS if t["name"] != "exec"])
    assert [b.name for b in reply.content if b.type == "tool_use"] == ["list_files"]


def test_a_stream_of_pings_says_nothing_and_then_goes_on(sim: Simulator) -> None:
    sim.control("faults", {"kind": "pings", "every": 0.01, "seconds": 0.5})
    body = {
        "model": "claude-sonnet-5-5",
        "max_tokens": 1000,
        "messages": [{"role": "user", "content": GOAL}],
        "tools": TOOLS,
        "stream": True,
    }
    _, _, data = raw(sim, "POST", "/v1/messages?beta=true", json.dumps(body).encode())
    kinds = [json.loads(part.split(b"data: ", 1)[1])["type"] for part in data.strip().split(b"\n\n")]
    assert kinds[:50] == ["ping"] * 50
    assert kinds[50] == "message_start"
    assert kinds[-1] == "message_stop"


def test_a_shut_door_refuses_connections_and_opens_again() -> None:
    """A simulator of its own: it cuts every connection."""
    with running() as mine:
        raw(mine, "POST", "/_sim/hold")
        waiting = http.client.HTTPConnection(urllib.parse.urlsplit(mine.url).netloc, timeout=10)
        waiting.connect()
        status, _, told = raw(mine, "POST", "/_sim/refuse", b'{"seconds": 1}')
        assert (status, json.loads(told)) == (200, {"refused_s": 1})
        assert waiting.sock.recv(1) == b"", "what was connected is cut"
        with pytest.raises(ConnectionRefusedError):
            raw(mine, "GET", "/")
        deadline = time.monotonic() + 10
        while True:
            try:
                assert raw(mine, "GET", "/")[0] == 200
            except ConnectionRefusedError:
                assert time.monotonic() < deadline, "the door stays shut"
                time.sleep(0.02)
            else:
                break
        status, _, text = raw(mine, "POST", "/_sim/refuse", b'{"seconds": 0}')
        assert status == 400
        assert b"seconds" in text


def test_a_compaction_stands_first_is_billed_and_leaves_nothing_before_it(sim: Simulator) -> None:
    edit = {"type": "compact_20260112", "trigger": {"type": "input_tokens", "value": 2000}}
    more = {"betas": ["compact-2026-01-12"], "context_management": {"edits": [edit]}}
    before = sim.control("usage")["total"]["tokens"]
    small = ask(sim, **more)
    assert small.content[0].type == "thinking"
    long = [{"role": "user", "content": GOAL + "x" * 20_000}]
    reply = ask(sim, messages=long, **more)
    kinds = [block.type for block in reply.content]
    assert kinds == ["compaction", "thinking", "text", "tool_use", "tool_use"]
    made, told = reply.usage.iterations or []
    assert (made.type, told.type) == ("compaction", "message")
    assert made.input_tokens > 5000 > reply.usage.input_tokens == told.input_tokens
    billed = sim.control("usage")["total"]["tokens"]
    total = small.usage.input_tokens + reply.usage.input_tokens + made.input_tokens
    assert billed["input"] - before["input"] == total
    answered = [
        {"type": "tool_result", "tool_use_id": block.id, "content": "ok"}
        for block in reply.content
        if block.type == "tool_use"
    ]
    content = [block.to_dict() for block in reply.content]
    later = [*long, {"role": "assistant", "content": content}, {"role": "user", "content": answered}]
    assert ask(sim, messages=later, **more).usage.input_tokens < 2000, "what came before it counts no more"
    later[1]["content"] = [{**content[0], "content": "something else"}, *content[1:]]
    with pytest.raises(anthropic.BadRequestError, match="compaction_signature_invalid"):
        ask(sim, messages=later, **more)


def test_the_vendors_memory_tool_is_known_by_its_type_and_its_name(sim: Simulator) -> None:
    turns = [{"text": "I look.", "calls": [["memory", {"command": "view", "path": "/memories"}]]}]
    goal = f"play it\n```sim\n{json.dumps(turns)}\n```"
    (_, call) = ask(sim, goal, tools=[{"type": "memory_20250818", "name": "memory"}]).content
    assert call.to_dict()["input"] == {"command": "view", "path": "/memories"}
    for wrong in ({"type": "memory_20250818", "name": "notes"}, {"type": "memory_1", "name": "memory"}):
        with pytest.raises(anthropic.BadRequestError):
            ask(sim, goal, tools=[wrong])
