"""One attempt at the model API, and the rule for what counts as a reply.

A cut stream looks like a normal message. So only this is a reply: ``message_stop`` was seen, every block was closed,
the stop reason is known and fits the content, and each tool input is strict JSON in the bytes received.
"""

from __future__ import annotations

import contextlib
import json
import re
import ssl
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn, cast

import anthropic
import httpx2
import msgspec
from anthropic._types import RequestOptions

from harness.agents.errors import Interruption
from harness.brain.api import own_means
from harness.brain.api.assembly import Assembly
from harness.brain.api.bill import Believed, Bounds
from harness.brain.api.carried import MAX_DEPTH, too_deep, whole
from harness.brain.api.errors import Overdue, TooLarge
from harness.brain.api.own_means import Own
from harness.brain.api.retry import Failure, classify, no_stream, used_up_s
from harness.brain.api.wire import COMPRESSED, Wire, streams
from harness.domain.calls.attempt import AttemptKind
from harness.events.messages_api import STOPS, Block, parts_of
from harness.events.types import Usage
from harness.protocol.config.api_key import DEFAULT_BASE_URL

_CONNECT_S = 15.0
_WRITE_S = 60.0
_COUNT_TIMEOUT_S = 15.0
END_S = 0.005
"""Seconds that a stream's end may come after its last event."""
_NAME = re.compile(r"[A-Za-z0-9_.:|/=+-]{1,256}")
"""Ids and tool names are sent back with every later request: what the API would not take must not enter the log."""
_LONGEST_MODEL = 256
_LONGEST_WORD = 80
"""Of what an endpoint says in place of a word that is known."""
_MOST_TOKENS = 1 << 32
"""No request is as long: who counts more does not count."""
MAX_CONTENT = 4 << 20
"""Bytes of a reply's parts, as JSON: what a frame to the keeper carries."""
_HEAD = 4096
"""Of what came, to say what it is when it is no stream of events."""
_MAX_RAW = 128 << 20
"""Bytes of its event stream; small deltas are mostly envelope."""


@dataclass(frozen=True, slots=True)
class AttemptRequest:
    """Everything one attempt sends."""

    model: str
    max_tokens: int
    system: list[Block]
    tools: list[Block]
    messages: bytes
    """A JSON array: a long conversation is encoded once, and not by every request again."""
    no_tools: bool = False
    """Keep the tools in the request (the prompt cache holds) but let the model use none."""
    schema: Block | None = None
    """The JSON schema that the reply is held to."""
    own: Own = field(default_factory=Own)
    """What the endpoint itself may do with the context."""


@dataclass(frozen=True, slots=True)
class ModelReply:
    """A complete reply. ``detail``: what the endpoint said about a refusal."""

    message_id: str
    model: str
    stop_reason: str
    usage: Usage
    content: list[Block]
    ms: int
    detail: str = ""
    used_up_s: float | None = None
    """Seconds until a rate limit of which this reply took the last is filled again."""
    compaction: Usage = field(default_factory=Usage)
    """The part of ``usage`` that a compaction by the endpoint took."""
    doubt: str = ""
    """What of the reported usage cannot be, in words; ``usage`` has the most that it may have cost in its place."""


@dataclass(frozen=True, slots=True)
class Deadlines:
    """Seconds: until a reply begins, between two pieces of its content, for the whole of it."""

    first_s: float = 300.0
    silence_s: float = 300.0
    total_s: float = 3600.0


class Paced(httpx2.SyncByteStream):
    """A response's bytes with somebody looking at the clock at each arrival: the SDK passes over pings, so only here
    are they seen for what they are.
    """

    def __init__(self, inner: httpx2.SyncByteStream, deadlines: Deadlines, watch: Callable[[], None]) -> None:
        self._inner = inner
        self._chunks = iter(inner)
        self._deadlines = deadlines
        self._watch = watch
        self._said = time.monotonic()
        self._begun = self._said
        self._raw = 0
        self._content = 0
        self.head = b""
        """The first bytes that came."""

    def __iter__(self) -> Iterator[bytes]:
        for chunk in self._chunks:
            self._raw += len(chunk)
            if len(self.head) < _HEAD:
                self.head += chunk[:_HEAD]
            self._look()
            yield chunk

    def close(self) -> None:
        self._inner.close()

    def finish(self, wire: Any) -> None:
        """Take in the end of a stream whose reply is complete, so that its connection can serve the next request.

        It may have come with the last piece, which only the HTTP layer knows; one that does not come at once is not
        waited for: raises ReadTimeout. ``wire`` is that layer's stream, whose reads wait as long as a reply may.
        """
        read: Callable[[int, float], bytes] = wire.read
        wire.read = lambda most, timeout=END_S: read(most, min(timeout, END_S))
        begun = time.monotonic()
        try:
            while next(self._chunks, None) is not None and time.monotonic() - begun < END_S:
                continue
        finally:
            del wire.read

    def said(self, size: int) -> None:
        """A piece of content has come. Raises TooLarge."""
        self._said = time.monotonic()
        self._content = self._content + size
        if self._content > MAX_CONTENT:
            raise TooLarge(f"the reply is larger than {MAX_CONTENT >> 20} MiB, more than can be kept; it was cut off")

    def _look(self) -> None:
        self._watch()
        now = time.monotonic()
        d = self._deadlines
        if now - self._begun > d.total_s:
            raise Overdue(f"the reply was not complete after {d.total_s:.0f} s")
        if now - self._said > d.silence_s:
            raise Overdue(f"the connection is kept open, but no word of the reply came for {d.silence_s:.0f} s")
        if self._raw > _MAX_RAW:
            raise TooLarge(f"the reply's stream is larger than {_MAX_RAW >> 20} MiB; it was cut off")


@dataclass(slots=True)
class Progress:
    """How far a reply has come, for whoever looks: seconds of the monotonic clock, bytes of content."""

    begun: float
    bytes: int = 0
    newest: float = 0.0


def make_client(base_url: str, key: str, context: ssl.SSLContext | None = None) -> anthropic.Anthropic:
    """A client without retries of its own that follows no redirect: the HTTP layer would carry the key in ``x-api-key``
    to any host that is named.

    ``context``: a TLS context made earlier, so that a fork need not make one.
    """
    verify: dict[str, Any] = {} if context is None else {"verify": context}
    http = anthropic.DefaultHttpxClient(follow_redirects=False, event_hooks=Wire().hooks(), **verify)
    return anthropic.Anthropic(
        api_key=key,
        base_url=base_url or DEFAULT_BASE_URL,
        max_retries=0,
        default_headers={"accept-encoding": "identity"},
        http_client=http,
        open_telemetry=False,
    )


def _nothing() -> None:
    return None


def attempt(
    client: anthropic.Anthropic,
    request: AttemptRequest,
    watch: Callable[[], None],
    deadlines: Deadlines = Deadlines(),
    heard: Callable[[], None] = _nothing,
    progress: Progress | None = None,
    reserved: int = 0,
) -> ModelReply | Failure:
    """Send once, ``reserved`` being the input tokens that are paid for in advance (0: nobody reckoned them).

    ``watch`` is called at every arrival and may raise `Interruption`; ``heard`` once, at the first words; ``progress``
    is kept up to date. Everything else becomes a value.
    """
    begun = time.monotonic()
    reply = Assembly()
    body, headers = encoded(request)
    try:
        with _open(client, body, headers, deadlines) as sent:
            response = sent.response
            if not streams(response):
                return no_stream(response, response.read())
            if encoding := response.extensions.get(COMPRESSED):
                return Failure(
                    AttemptKind.SERVER, f"it compresses ({encoding[:40]!r}) what it was asked to send as it is"
                )
            used_up = used_up_s(response.headers)
            paced = Paced(cast(httpx2.SyncByteStream, response.stream), deadlines, watch)
            response.stream = paced
            # the first one was for its beginning
            response.request.extensions.get("timeout", {})["read"] = deadlines.silence_s
            for event in sent:
                begun_before = reply.begun
                size = reply.take(event)
                if reply.begun and not begun_before:
                    heard()
                paced.said(size)
                if progress is not None:
                    progress.bytes += size
                    progress.newest = time.monotonic()
                if reply.complete:
                    break
            if not reply.begun:
                return no_stream(response, paced.head)
            if not reply.complete:
                return Failure(AttemptKind.CUT, "the stream ended before the reply was complete")
            with contextlib.suppress(Exception):  # the reply is complete, whatever is wrong behind it
                paced.finish(response.extensions["network_stream"])
        believed = reply.bill.believed(_bounds(request, reserved))
        return accept(reply, request.tools, int((time.monotonic() - begun) * 1000), believed, used_up)
    except Interruption:
        raise
    except Exception as exc:
        # the SDK, its HTTP layer, its decoders and a reply of no known shape raise many kinds; each is a failed
        # attempt, on record
        failure = classify(exc, reply.begun)
        return replace(failure, bytes=len(body)) if failure.kind == AttemptKind.TOO_BIG else failure


def encoded(request: AttemptRequest) -> tuple[bytes, dict[str, str]]:
    """The body of a request, and the headers that go with it."""
    head: dict[str, object] = {
        "model": request.model,
        "max_tokens": request.max_tokens,
        "system": request.system,
        "tools": request.tools,
        "stream": True,
    }
    if request.schema is not None:
        head["output_config"] = {"format": {"type": "json_schema", "schema": request.schema}}
    if request.no_tools and request.tools:
        head["tool_choice"] = {"type": "none"}
    wanted, betas = own_means.fields(request.own, request.messages)
    head |= wanted
    headers = {"anthropic-beta": ",".join(sorted(betas))} if betas else {}
    return b'%b,"messages":%b}' % (msgspec.json.encode(head)[:-1], request.messages), headers


def _open(
    client: anthropic.Anthropic, body: bytes, headers: dict[str, str], deadlines: Deadlines
) -> anthropic.Stream[object]:
    """A response whose body is yet to be read, as ``client.beta.messages.stream`` asks for it, with a body that is
    encoded already: the SDK would copy and walk the whole of it for each request.
    """
    timeout = httpx2.Timeout(connect=_CONNECT_S, read=deadlines.first_s, write=_WRITE_S, pool=_CONNECT_S)

    options: RequestOptions = {"params": {"beta": "true"}, "timeout": timeout, "headers": headers}
    return client.post(
        "/v1/messages",
        content=body,
        cast_to=object,
        options=options,
        stream=True,
        stream_cls=anthropic.Stream[object],
    )


def accept(
    reply: Assembly, tools: list[Block], ms: int, bill: Believed, used_up: float | None = None
) -> ModelReply | Failure:
    """The reply with what is believed of its ``bill``, or why it is none; pure."""
    message = reply.message
    usage = bill.usage
    if not _NAME.fullmatch(message.id) or not 0 < len(message.model) <= _LONGEST_MODEL:
        return Failure(AttemptKind.CUT, "the reply has no usable id or model name")
    reason = message.stop_reason or ""
    if not reply.complete or reply.closed != set(range(len(message.content))):
        return Failure(AttemptKind.CUT, "the reply has unfinished blocks")
    if reason not in STOPS:
        return Failure(
            AttemptKind.CUT, f"the reply stopped for an unknown reason: {reason[:_LONGEST_WORD] or 'none'}", usage=usage
        )
    if any(too_deep(block) for block in message.content):
        return Failure(
            AttemptKind.UNUSABLE, f"a block of the reply is nested deeper than {MAX_DEPTH} levels", usage=usage
        )
    content = [cast(Block, whole(block)) for block in message.content]
    calls = [i for i, block in enumerate(content) if block.get("type") == "tool_use"]
    if reason == "max_tokens" and (
        calls or not any(str(b.get("text", "")).strip() for b in content if b.get("type") == "text")
    ):
        return Failure(
            AttemptKind.MAX_TOKENS,
            "the reply reached the output limit " + ("inside a tool call" if calls else "before it said anything"),
            usage=usage,
        )
    # those two are never carried on, whatever they contain
    if reason not in ("refusal", "model_context_window_exceeded"):
        if (reason == "tool_use") != bool(calls):
            return Failure(
                AttemptKind.CUT, f"the reply stopped with {reason} but holds {len(calls)} tool calls", usage=usage
            )
        schemas = {str(tool["name"]): tool.get("input_schema") for tool in tools}
        required = {name: schema is None or bool(schema.get("required")) for name, schema in schemas.items()}
        ids = [str(content[i].get("id", "")) for i in calls]
        if not all(map(_NAME.fullmatch, ids)):
            return Failure(AttemptKind.CUT, "a tool call has no usable id", usage=usage)
        if len(set(ids)) != len(ids):
            return Failure(AttemptKind.CUT, "two calls of the reply have the same id", usage=usage)
        for i in calls:
            if why := _bad_call(content[i], reply.inputs.get(i, ""), required):
                return Failure(AttemptKind.UNUSABLE, why, usage=usage)
    if (size := len(msgspec.json.encode(parts_of(content)))) > MAX_CONTENT:
        return Failure(
            AttemptKind.TOO_LARGE,
            f"the reply holds {size:,} bytes, more than can be kept ({MAX_CONTENT >> 20} MiB)",
            usage=usage,
        )
    detail = message.stop_details
    said = "" if detail is None else json.dumps(detail, ensure_ascii=False)
    return ModelReply(
        message.id,
        str(whole(message.model)),
        reason,
        usage,
        content,
        ms,
        str(whole(said)),
        used_up,
        bill.compaction,
        bill.doubt,
    )


def _bounds(request: AttemptRequest, reserved: int) -> Bounds:
    """A token is a byte at least, and an endpoint that summarises the context by itself first reads and writes
    twice.
    """
    readings = 2 if request.own.compact_from else 1
    sent = len(request.messages) + len(msgspec.json.encode((request.system, request.tools, request.schema)))
    return Bounds(sent * readings, request.max_tokens * readings, (reserved or sent) * readings)


def _bad_call(block: Block, received: str, required: dict[str, bool]) -> str:
    """Why a call must not run, or nothing. Sets the block's input to the strictly parsed one.

    Name and input are the model's own words, so what is wrong with them says nothing of the endpoint.
    """
    name = str(block.get("name", ""))
    if not _NAME.fullmatch(name):
        return "a tool call has no usable name"
    if not received.strip():
        if block.get("input") or required.get(name, True):
            return f"the call of {name} arrived without its input"
        block["input"] = {}
        return ""
    try:
        value = json.loads(received, parse_constant=_no_constant)
        if too_deep(value):
            raise RecursionError
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except RecursionError:
        return f"the input of {name} is nested deeper than {MAX_DEPTH} levels"
    except ValueError as exc:
        return f"the input of {name} is not valid JSON: {exc}"
    if not isinstance(value, dict):
        return f"the input of {name} is not a JSON object"
    block["input"] = value
    return ""


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def count_tokens(client: anthropic.Anthropic, request: AttemptRequest) -> int | None:
    """Exact input tokens, or None when the endpoint does not count (its refusal shows again, and is recorded, on the
    request itself).
    """
    headers = {"anthropic-beta": "token-counting-2024-11-01"}
    options: RequestOptions = {"params": {"beta": "true"}, "timeout": _COUNT_TIMEOUT_S, "headers": headers}
    head = {"model": request.model, "system": request.system, "tools": request.tools}
    body = b'%b,"messages":%b}' % (msgspec.json.encode(head)[:-1], request.messages)
    counted: object = None
    for again in (True, False):  # a connection that was kept may be one that the other end has just closed
        try:
            counted = client.post("/v1/messages/count_tokens", content=body, cast_to=object, options=options)
            break
        except anthropic.APIConnectionError as exc:
            if not again or isinstance(exc, anthropic.APITimeoutError):
                return None
        except (anthropic.AnthropicError, httpx2.HTTPError, OSError, ValueError):
            return None
    # an endpoint that is no Messages API may answer 200 with anything
    value = cast(dict[str, object], counted).get("input_tokens") if isinstance(counted, dict) else None
    return value if isinstance(value, int) and 0 <= value < _MOST_TOKENS else None
