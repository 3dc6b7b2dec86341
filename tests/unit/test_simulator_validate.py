"""Requests are refused as the vendor refuses them."""

from __future__ import annotations

from typing import Any

import pytest

from harness.simulator import validate
from harness.simulator.errors import ApiError

USE = {"type": "tool_use", "id": "toolu_1", "name": "exec", "input": {}}
RESULT = {"type": "tool_result", "tool_use_id": "toolu_1", "content": "ok"}
HI = {"role": "user", "content": "hi"}


def body(*messages: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"model": "claude-sonnet-5-5", "max_tokens": 100, "messages": list(messages) or [HI], **more}


def test_accepts_a_conversation_with_tools() -> None:
    both = {"role": "user", "content": [RESULT, {"type": "text", "text": "and more"}]}
    given = body(
        HI,
        {"role": "assistant", "content": [USE]},
        both,
        {"role": "assistant", "content": "done"},
        HI,
        system="s",
        tools=[],
        stream=True,
    )
    assert validate.check(given) is given
    assert validate.check({"model": "claude-sonnet-5-5", "messages": [HI]}, counting=True)


BAD: list[tuple[dict[str, Any], str]] = [
    (body(surprise=1), "surprise: Extra inputs are not permitted"),
    ({"model": "claude-sonnet-5-5", "messages": [HI]}, "max_tokens: Field required"),
    (body(max_tokens=0), "greater than or equal to 1"),
    (body(max_tokens=200_000), "maximum allowed number of output tokens for claude-sonnet-5-5"),
    (body(max_tokens=True), "valid integer"),
    (body(model=""), "model: Input should be a valid string"),
    (body({"role": "assistant", "content": "x"}), "first message must use"),
    (body(HI, HI), 'found multiple "user" roles in a row'),
    (body(HI, {"role": "assistant", "content": "x"}), "does not support assistant message prefill"),
    (body({"role": "user", "content": ""}), "non-empty content"),
    (body({"role": "user", "content": [{"type": "text", "text": ""}]}), "text content blocks must be non-empty"),
    (body({"role": "user", "content": [{"type": "text", "text": " \n"}]}), "non-whitespace"),
    (body({"role": "system", "content": "x"}), "role"),
    (body({"role": "user", "content": [{"type": "telepathy"}]}), "telepathy"),
    (body({"role": "user", "content": [USE]}), "can only be in `assistant`"),
    (body(HI, {"role": "assistant", "content": [USE]}), "without `tool_result` blocks immediately after: toolu_1"),
    (body(HI, {"role": "assistant", "content": [USE]}, HI), "without `tool_result` blocks immediately after: toolu_1"),
    (
        body(
            HI,
            {"role": "assistant", "content": [USE]},
            {"role": "user", "content": [{"type": "text", "text": "first"}, RESULT]},
        ),
        "immediately after",
    ),
    (body(HI, {"role": "assistant", "content": [USE]}, {"role": "user", "content": [RESULT, RESULT]}), "single result"),
    (body({"role": "user", "content": [RESULT]}), "unexpected `tool_use_id`"),
    (
        body(HI, {"role": "assistant", "content": [USE, USE]}, {"role": "user", "content": [RESULT]}),
        "ids must be unique",
    ),
    (body(tools=[{"name": "a b", "input_schema": {"type": "object"}}]), "pattern"),
    (body(tools=[{"name": "a", "input_schema": {"type": "array"}}]), "Input should be 'object'"),
    (body(tools=[{"name": "a", "input_schema": {"type": "object"}}] * 2), "unique"),
]


@pytest.mark.parametrize(("given", "words"), BAD, ids=[words[:40] for _, words in BAD])
def test_refuses(given: dict[str, Any], words: str) -> None:
    with pytest.raises(ApiError) as caught:
        validate.check(given)
    assert caught.value.status == 400
    assert words in caught.value.message


def test_unknown_model_is_not_found() -> None:
    with pytest.raises(ApiError) as caught:
        validate.check(body(model="claude-nonesuch"))
    assert caught.value.status == 404
    assert caught.value.body("req_1") == {
        "type": "error",
        "error": {"type": "not_found_error", "message": "model: claude-nonesuch"},
        "request_id": "req_1",
    }
