"""What an answer means that is no reply, in the spellings of the API, of servers that speak it and of proxies."""

from __future__ import annotations

import pytest

from harness.brain.api.refusals import Answer, kind_of, most_output

INVALID = "invalid_request_error"
LONG = (
    "prompt is too long: 210000 tokens > 200000 maximum",
    "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length",
    "This exceeds the model's maximum context",
    "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens",
    "the request exceeds the available context size. try increasing the context size or enable context shift",
    "Input is too long for requested model.",
    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
    "Please reduce the length of the messages or completion.",
)
HISTORY = (
    "messages.1.content.0: Invalid `signature` in `thinking` block",
    "messages.5.content.2: `thinking` blocks in the latest assistant message cannot be modified.",
    "messages.3.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`.",
    "messages.7: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1.",
    "messages.2.content.0: unexpected `tool_use_id` found in `tool_result` blocks: toolu_9.",
    'messages: roles must alternate between "user" and "assistant", but found multiple "user" roles in a row',
    "messages: text content blocks must be non-empty",
    "messages.0.content.1: Extra inputs are not permitted",
    "Could not process image",
    "messages.4.content.0.image.source.base64: image exceeds 5 MB maximum: 7 MB > 5 MB",
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.",
    "Conversation roles must alternate user/assistant/user/assistant/...",
    "Invalid base64 data in document",
)
SETTING = (
    "max_tokens: 32000 > 8192, which is the maximum allowed number of output tokens for claude-3-haiku",
    "Unexpected value(s) `context-management-2025-06-27` for the `anthropic-beta` header.",
    "tools.0.custom.name: String should match pattern",
    "tool_choice.type: Input should be a valid string",
    "context_management: Extra inputs are not permitted",
    "registry.ollama.ai/library/gemma:2b does not support tools",
)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        *((Answer(400, INVALID, message=words), "too_long") for words in LONG),
        *((Answer(400, message=words), "too_long") for words in LONG),
        (Answer(400, INVALID, "context_length_exceeded", "no"), "too_long"),
        (Answer(413, INVALID, message=LONG[0]), "too_long"),
        (Answer(200, INVALID, message=LONG[0]), "too_long"),
        (Answer(500, "api_error", message=LONG[4]), "too_long"),
        (Answer(503, "api_error", message="context limit service is away"), "server"),
        *((Answer(400, INVALID, message=words), "history") for words in HISTORY),
        *((Answer(422, "", message=words), "history") for words in HISTORY),
        *((Answer(400, INVALID, message=words), "setting") for words in SETTING),
        (Answer(400, INVALID, message="something about you"), "invalid"),
        (Answer(422, "", message="no"), "invalid"),
        (Answer(413, "request_too_large", message="Request exceeds the maximum size"), "too_big"),
        (Answer(413, message="<html>nginx</html>", api=False), "too_big"),
        (Answer(400, INVALID, message="Request body is too large"), "too_big"),
        (Answer(400, message="<html>Request Header Or Cookie Too Large</html>", api=False), "server"),
        (Answer(401, message="<html>", api=False), "auth"),
        (Answer(402), "spend_limit"),
        (Answer(400, INVALID, message="Your credit balance is too low to access the API."), "spend_limit"),
        (Answer(429, "insufficient_quota", message="You exceeded your current quota"), "spend_limit"),
        (Answer(429, "rate_limit_error", "enforced_spend_limit_reached"), "spend_limit"),
        (Answer(429, message="<html>slow down</html>", api=False), "rate_limit"),
        (Answer(403, "permission_error"), "auth"),
        (Answer(403, message="Blocked by the proxy"), "server"),
        (Answer(404, "not_found_error", message="model: claude-none"), "model_unknown"),
        (Answer(404, message="model 'x' not found, try pulling it first"), "model_unknown"),
        (Answer(400, message="The model `gpt-9` does not exist"), "model_unknown"),
        (Answer(404, message="<h1>Not Found</h1>", api=False), "server"),
        (Answer(405, message="Method Not Allowed"), "model_unknown"),
        (Answer(407, message="<html>", api=False), "page"),
        (Answer(511, message="<html>", api=False), "page"),
        (Answer(408, message="<html>", api=False), "network"),
        (Answer(409, message="conflict"), "server"),
        (Answer(451, message="not in your country"), "auth"),
        (Answer(451, message="<html>", api=False), "server"),
        (Answer(529, "overloaded_error"), "overloaded"),
        (Answer(200, "overloaded_error"), "overloaded"),
        (Answer(200, "some_newer_error"), "server"),
        (Answer(520, message="<html>", api=False), "server"),
    ],
)
def test_what_an_answer_means(answer: Answer, kind: str) -> None:
    assert kind_of(answer) == kind


@pytest.mark.parametrize(
    ("message", "most"),
    [
        (SETTING[0], 8192),
        ("max_tokens: 64,001 > 64,000, which is the maximum", 64_000),
        ("`max_tokens` must be less than or equal to `4096`".replace("`4096`", "4096"), 4096),
        ("max_tokens is too large: 9000. This model supports at most 4096 completion tokens", 4096),
        ("max_tokens: Input should be greater than or equal to 1", 0),
        ("no", 0),
    ],
)
def test_the_longest_reply_is_read_from_the_refusal_of_a_longer_one(message: str, most: int) -> None:
    assert most_output(message) == most
