"""Everything a model request touches, loaded and exercised once without a socket or a thread, so that forked brains
share it.
"""

from __future__ import annotations

import importlib
import json
import ssl
from collections.abc import Iterator

import anthropic
import httpx2

from harness.brain import model_limits
from harness.brain.api import stream
from harness.brain.api.retry import Failure

_LATE = (
    "h11",
    "httpcore2",
    "httpcore2._sync.http11",
    "httpcore2._sync.connection",
    "httpcore2._backends.sync",
    "socket",
    "encodings.idna",
    "stringprep",
)
_USAGE = {"input_tokens": 1, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0, "output_tokens": 1}
_EVENTS: tuple[dict[str, object], ...] = (
    {
        "type": "message_start",
        "message": {
            "id": "msg_0",
            "type": "message",
            "role": "assistant",
            "model": "m",
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": _USAGE,
        },
    },
    {"type": "ping"},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": "", "signature": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "a"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "signature_delta", "signature": "a"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "a"}},
    {"type": "content_block_stop", "index": 1},
    {
        "type": "content_block_start",
        "index": 2,
        "content_block": {"type": "tool_use", "id": "toolu_0", "name": "a", "input": {}},
    },
    {"type": "content_block_delta", "index": 2, "delta": {"type": "input_json_delta", "partial_json": "{}"}},
    {"type": "content_block_stop", "index": 2},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "tool_use", "stop_sequence": None},
        "usage": {"output_tokens": 1},
    },
    {"type": "message_stop"},
)


class _Bytes(httpx2.SyncByteStream):
    def __iter__(self) -> Iterator[bytes]:
        for event in _EVENTS:
            yield f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode()


def _respond(request: httpx2.Request) -> httpx2.Response:
    if request.url.path.endswith("/count_tokens"):
        return httpx2.Response(200, json={"input_tokens": 1})
    if request.method == "GET":
        return httpx2.Response(200, json={"max_input_tokens": 200_000, "max_tokens": 8192})
    if b'"fail"' in request.content:
        return httpx2.Response(
            529, json={"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
        )
    return httpx2.Response(200, headers={"content-type": "text/event-stream"}, stream=_Bytes())


def tls_context() -> ssl.SSLContext:
    """The TLS context every brain's client uses; it holds no connection."""
    return httpx2.create_ssl_context()


def load() -> ssl.SSLContext:
    """Run a reply, a refusal and a token count through the SDK in memory; returns the shared TLS context.

    Raises RuntimeError when the SDK changed.
    """
    for name in _LATE:
        importlib.import_module(name)
    context = tls_context()
    stream.make_client("http://127.0.0.1:9", "none", context).close()
    http = anthropic.DefaultHttpxClient(transport=httpx2.MockTransport(_respond))
    client = anthropic.Anthropic(
        api_key="none", base_url="http://127.0.0.1:9", max_retries=0, http_client=http, open_telemetry=False
    )
    tools = [{"name": "a", "description": "a", "input_schema": {"type": "object", "properties": {}}}]
    for model, kind in (("m", stream.ModelReply), ("fail", Failure)):
        request = stream.AttemptRequest(
            model,
            1,
            [{"type": "text", "text": "a"}],
            tools,
            b'[{"role":"user","content":[{"type":"text","text":"a"}]}]',
        )
        if not isinstance(outcome := stream.attempt(client, request, lambda: None), kind):
            raise RuntimeError(f"the SDK does not behave as expected: {outcome}")
        stream.count_tokens(client, request)
        model_limits.ask(client, model)
    client.close()
    return context
