"""One attempt against a real HTTP server: what is a reply, what is a failure, and what each failure is called."""

from __future__ import annotations

import gc
import socket
import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from anthropic.types.beta import BetaMessage

from harness.agents.errors import Interruption
from harness.brain.api import retry, stream
from harness.brain.api.retry import Failure
from harness.events.types import Usage
from harness.tools import registry
from tests.process.brainlib import Answer, ModelServer, error, reply, sse
from tests.process.brainlib import stream as streamed

CALL = {"type": "tool_use", "id": "toolu_1", "name": "exec", "input": {"argv": ["ls", "-l", "ü"], "why": "look"}}
TEXT = {"type": "text", "text": "I will look around first."}


def request(**changes: Any) -> stream.AttemptRequest:
    base: dict[str, Any] = {
        "model": "claude-test",
        "max_tokens": 1000,
        "system": [{"type": "text", "text": "s"}],
        "tools": [tool.definition() for tool in registry.TABLE.values()],
        "messages": b'[{"role":"user","content":[{"type":"text","text":"go"}]}]',
    }
    return stream.AttemptRequest(**{**base, **changes})


def once(answer: Answer, **changes: Any) -> stream.ModelReply | Failure:
    with ModelServer(answer) as server, stream.make_client(server.url, "key") as client:
        return stream.attempt(client, request(**changes), lambda: None)


def test_a_complete_reply_comes_back_unchanged() -> None:
    thinking = {"type": "thinking", "thinking": "let me see", "signature": "c2lnbmF0dXJl"}
    outcome = once(
        streamed(
            thinking,
            TEXT,
            CALL,
            usage={"cache_creation": {"ephemeral_5m_input_tokens": 1, "ephemeral_1h_input_tokens": 2}},
        )
    )
    assert isinstance(outcome, stream.ModelReply)
    assert outcome.stop_reason == "tool_use"
    assert outcome.content == [thinking, TEXT, CALL]
    assert outcome.usage == Usage(input=100, cache_read=20, cache_write_5m=1, cache_write_1h=2, output=42)


@pytest.mark.parametrize(
    ("usage", "words"),
    [
        ({"output_tokens": 10**11}, "100,000,000,000 tokens written where 1,000 were allowed"),
        ({"output_tokens": 1100}, "1,100 tokens written where 1,000 were allowed"),
        ({"cache_read_input_tokens": 10**11}, "100,000,000,103 tokens read of "),
        ({"input_tokens": 90_000}, "90,023 tokens read of "),
        ({"input_tokens": -1}, "input_tokens -1"),
        ({"output_tokens": -1}, "output_tokens -1"),
    ],
)
def test_a_usage_that_cannot_be_costs_what_was_reserved_and_not_the_reply(usage: dict[str, int], words: str) -> None:
    answer = streamed(TEXT, usage=usage, stop="end_turn")
    answer.body = answer.body.replace(b'"output_tokens": 42', b'"output_tokens": %d' % usage.get("output_tokens", 42))
    with ModelServer(answer) as server, stream.make_client(server.url, "key") as client:
        outcome = stream.attempt(client, request(), lambda: None, reserved=7000)
    assert isinstance(outcome, stream.ModelReply)
    assert words in outcome.doubt
    assert outcome.usage.given == (123 if "output_tokens" in usage else 7000)
    assert outcome.usage.output == (1000 if "output_tokens" in usage else 42)


def _models_of_messages() -> int:
    made = gc.get_objects()
    return sum(str(type(thing).__module__).startswith(("anthropic.types", "anthropic.lib.streaming")) for thing in made)


def test_no_reply_makes_models_of_the_sdk() -> None:
    assert isinstance(once(streamed(TEXT, CALL)), stream.ModelReply)
    gc.collect()
    known = _models_of_messages(), BetaMessage.__subclasses__()
    gc.disable()  # what a reply would make is seen before it is collected
    try:
        assert isinstance(once(streamed(TEXT, CALL)), stream.ModelReply)
        assert (_models_of_messages(), BetaMessage.__subclasses__()) == known
    finally:
        gc.enable()


def request_came(connection: socket.socket) -> bool:
    got = b""
    while b"\r\n\r\n" not in got or len(got) < got.index(b"\r\n\r\n") + 4 + _length(got):
        if not (more := connection.recv(1 << 16)):
            return False
        got += more
    return True


def _length(request: bytes) -> int:
    return int(request.lower().split(b"content-length: ")[1].split(b"\r\n")[0])


def _serves_twice(
    listener: socket.socket, bodies: list[bytes], accepted: list[int], taken: threading.Semaphore, end: str
) -> None:
    """The end of a stream comes with its last event, later, when that was taken, or never."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
    last = b"0\r\n\r\n"
    while bodies:
        accepted.append(len(bodies))
        with listener.accept()[0] as connection:
            while bodies and request_came(connection):
                body = bodies.pop()
                connection.sendall(head + b"%x\r\n%b\r\n" % (len(body), body) + (last if end == "with it" else b""))
                taken.acquire()
                if end == "later":
                    connection.sendall(last)


@pytest.mark.parametrize(
    ("end", "patience_s", "connections"), [("with it", 10.0, [2]), ("later", 10.0, [2]), ("never", 0.02, [2, 1])]
)
def test_a_connection_serves_the_next_request_too(
    monkeypatch: pytest.MonkeyPatch, end: str, patience_s: float, connections: list[int]
) -> None:
    monkeypatch.setattr(stream, "END_S", patience_s)
    body = streamed(TEXT, stop="end_turn").body
    accepted: list[int] = []
    taken = threading.Semaphore(0)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        serving = (listener, [body, body], accepted, taken, end)
        serves = threading.Thread(target=_serves_twice, args=serving, daemon=True)
        serves.start()
        with stream.make_client(f"http://127.0.0.1:{listener.getsockname()[1]}", "key") as client:
            for _ in range(2):
                outcome = stream.attempt(client, request(), lambda: None, heard=taken.release)
                assert isinstance(outcome, stream.ModelReply)
        serves.join(10)
    assert accepted == connections


def test_no_tools_is_asked_for_with_the_tools_still_there() -> None:
    with ModelServer(streamed(TEXT, stop="end_turn")) as server, stream.make_client(server.url, "key") as client:
        stream.attempt(client, request(no_tools=True), lambda: None)
        assert server.requests[0]["tool_choice"] == {"type": "none"}
        assert len(server.requests[0]["tools"]) == len([tool.definition() for tool in registry.TABLE.values()])
        assert server.headers[0]["authorization"] == "Bearer key"


LIST = {"type": "tool_use", "id": "toolu_1", "name": "list_files"}


def test_a_call_without_arguments_is_fine_for_a_tool_that_needs_none() -> None:
    outcome = once(streamed({**LIST, "raw": ""}))
    assert isinstance(outcome, stream.ModelReply)
    assert outcome.content[0]["input"] == {}


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (streamed({**CALL, "raw": ""}), "unusable", "without its input"),
        (streamed({**CALL, "raw": '{"argv": ["ls"]'}), "unusable", "not valid JSON"),
        (streamed({**CALL, "raw": '{"argv": NaN}'}), "unusable", "not JSON"),
        (streamed({**CALL, "raw": '["ls"]'}), "unusable", "not a JSON object"),
        (streamed({**CALL, "raw": '{"argv": ["ls"]} trailing'}), "unusable", ""),
        (streamed({**CALL, "raw": '{"argv": ["\\ud800"]}'}), "unusable", ""),
        (streamed(TEXT, stop=None), "cut", "unknown reason"),
        (streamed(TEXT, stop="because"), "cut", "because"),
        (streamed(TEXT, CALL, stop="end_turn"), "cut", "holds 1 tool calls"),
        (streamed(TEXT, stop="tool_use"), "cut", "holds 0 tool calls"),
        (streamed({**CALL, "name": "run it!"}), "unusable", "no usable name"),
        (streamed({**CALL, "id": "a b"}), "cut", "no usable id"),
        (streamed(CALL, CALL), "cut", "same id"),
        (streamed(TEXT, CALL, final=False), "cut", "before the reply was complete"),
        (streamed(TEXT, {**CALL, "raw": '{"argv": ["l'}, stop="max_tokens"), "max_tokens", "inside a tool call"),
        (streamed({**CALL, "raw": ""}, stop="max_tokens"), "max_tokens", "inside a tool call"),
        (streamed(stop="max_tokens"), "max_tokens", "before it said anything"),
        (
            Answer(sse(reply(TEXT, CALL)[:-3]), headers={"content-type": "text/event-stream"}, length=False),
            "cut",
            "complete",
        ),
        (Answer(b"data: nonsense\n\n", headers={"content-type": "text/event-stream"}), "cut", ""),
        (
            Answer(b"event: message_start\ndata: {not json}\n\n", headers={"content-type": "text/event-stream"}),
            "cut",
            "",
        ),
    ],
)
def test_what_is_no_reply(answer: Answer, kind: str, says: str) -> None:
    outcome = once(answer)
    assert isinstance(outcome, Failure), outcome
    assert outcome.kind == kind
    assert says in outcome.message


def event_error(kind: str) -> Answer:
    events = [*reply(TEXT)[:4], {"type": "error", "error": {"type": kind, "message": "sorry"}}]
    return Answer(sse(events), headers={"content-type": "text/event-stream"}, length=False)


@pytest.mark.parametrize(
    ("answer", "kind", "status", "free"),
    [
        (error(401, "authentication_error"), "auth", 401, True),
        (error(403, "permission_error"), "auth", 403, True),
        (error(402, "billing_error"), "spend_limit", 402, True),
        (error(429, "rate_limit_error"), "rate_limit", 429, True),
        (
            error(429, "rate_limit_error", details={"error_code": "enforced_spend_limit_reached"}),
            "spend_limit",
            429,
            True,
        ),
        (error(429, "rate_limit_error", details={"error_code": "ramp_limit_exceeded"}), "spend_limit", 429, True),
        (error(404, "not_found_error", "model: claude-none"), "model_unknown", 404, True),
        (error(400, "invalid_request_error"), "invalid", 400, True),
        (error(413, "request_too_large"), "too_big", 413, True),
        (error(500, "api_error"), "server", 500, True),
        (error(529, "overloaded_error"), "overloaded", 529, True),
        (error(500, "some_newer_error"), "server", 500, True),
        (Answer(b"bad gateway", 502, {"content-type": "text/plain"}), "server", 502, True),
        *(
            (Answer(b"<html><h1>nginx</h1></html>", status, {"content-type": "text/html"}), "server", status, True)
            for status in (403, 404, 502, 503, 504)
        ),
        (
            Answer(b'{"error": "model \'x\' not found"}', 404, {"content-type": "application/json"}),
            "model_unknown",
            404,
            True,
        ),
        (event_error("overloaded_error"), "overloaded", 200, False),
        (event_error("api_error"), "server", 200, False),
    ],
)
def test_error_classes(answer: Answer, kind: str, status: int, free: bool) -> None:
    outcome = once(answer)
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.status, outcome.usage is not None) == (kind, status, free)


PAGE = {"content-type": "text/html; charset=utf-8"}
JSON = {"content-type": "application/json"}
SSE = {"content-type": "text/event-stream"}
WHOLE = b'{"id": "msg_1", "type": "message", "role": "assistant", "content": [], "usage": {}}'
NOT_YET = sse([{"type": "ping"}, {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}])


@pytest.mark.parametrize(
    ("answer", "kind", "says"),
    [
        (Answer(b"<html><title>Hotel\nWiFi</title></html>", headers=PAGE), "page", "web page: log in to the network?"),
        (Answer(b"<!DOCTYPE html><p>hi", headers={}), "page", "web page: log in to the network?"),
        (Answer(b"", headers=PAGE), "page", "log in"),
        (Answer(b"", headers={}), "page", "answers with nothing"),
        (Answer(b"", headers=JSON), "page", "answers with nothing"),
        (Answer(WHOLE, headers=JSON), "page", "application/json where a stream of events was asked for"),
        (Answer(b"\x1f\x8b\x08garbage", headers=JSON), "page", "application/json"),
        (Answer(b"\x1f\x8b\x08garbage\n\n", headers=SSE, length=False), "cut", "could not be read"),
        (Answer(b'{"error": {"type": "overloaded_error", "message": "busy"}}', headers=JSON), "overloaded", "busy"),
        (Answer(b'{"error": {"type": "invalid_request_error", "message": "no"}}', headers=JSON), "invalid", "no"),
        (Answer(b"", headers=SSE, length=False), "page", "answers with nothing"),
        (Answer(sse(reply(TEXT))[:40], headers=SSE, length=False), "cut", "before a reply began"),
        (Answer(sse(reply(TEXT))[:40], headers=SSE | {"content-length": "900"}, length=False), "network", "broke"),
        (Answer(NOT_YET, headers=SSE), "overloaded", "Overloaded"),
        (Answer(b"", 302, {"location": "http://10.0.0.1/login?next=/v1/messages"}), "page", "log in to the network?"),
        (Answer(b"", 511, PAGE), "page", "log in to the network"),
        (Answer(b"", 407, PAGE), "page", "log in to the network"),
        (error(529, "overloaded_error"), "overloaded", ""),
        (error(500, "some_newer_error"), "server", ""),
    ],
)
def test_no_reply_begun_is_no_charge(answer: Answer, kind: str, says: str) -> None:
    heard: list[int] = []
    with ModelServer(answer) as server, stream.make_client(server.url, "key") as client:
        outcome = stream.attempt(client, request(), lambda: None, heard=lambda: heard.append(1))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.usage, heard) == (kind, Usage(), [])
    assert says in outcome.message


def test_a_reply_that_began_may_have_cost_what_it_could() -> None:
    """From its first event on, whatever came behind it."""
    outcome = once(Answer(sse(reply(TEXT)[:1]), headers=SSE, length=False))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.usage) == ("cut", None)


def test_a_stream_without_a_type_is_a_stream() -> None:
    kept = streamed(TEXT, stop="end_turn")
    kept.headers = {}
    assert isinstance(once(kept), stream.ModelReply)


def test_one_attempt_is_one_request() -> None:
    with (
        ModelServer(script=lambda _: error(529, "overloaded_error")) as server,
        stream.make_client(server.url, "key") as client,
    ):
        stream.attempt(client, request(), lambda: None)
        assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ({"retry-after": "7"}, 7.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after-ms": "0", "retry-after": "7"}, 7.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "1e999"}, None),
        ({"retry-after": "99999999999999999999"}, None),
        ({"retry-after": "Mon, 01 Jan 0001 00:00:00 +2359"}, 0.0),
        ({}, None),
    ],
)
def test_retry_after(header: dict[str, str], seconds: float | None) -> None:
    outcome = once(error(429, "rate_limit_error", **header))
    assert isinstance(outcome, Failure)
    assert outcome.retry_after_s == seconds


def test_retry_after_as_a_date_in_the_past_is_now() -> None:
    outcome = once(error(429, "rate_limit_error", **{"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}))
    assert isinstance(outcome, Failure)
    assert outcome.retry_after_s == 0.0


def test_nobody_listens_costs_nothing() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
    with stream.make_client(url, "key") as client:
        outcome = stream.attempt(client, request(), lambda: None)
        assert stream.count_tokens(client, request()) is None
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.usage) == ("network", Usage())
    assert "reach" in outcome.message


@pytest.mark.parametrize("url", ["localhost:80", "ftp://example.invalid/"])
def test_a_base_url_that_cannot_be_used_is_not_retried(url: str) -> None:
    with stream.make_client(url, "key") as client:
        outcome = stream.attempt(client, request(), lambda: None)
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.usage) == ("invalid", Usage())


def test_a_reset_in_the_middle_is_a_network_failure_of_unknown_cost() -> None:
    body = sse(reply(TEXT, CALL))
    answer = Answer(
        body[: len(body) // 2],
        headers={"content-type": "text/event-stream", "content-length": str(len(body))},
        length=False,
    )
    outcome = once(answer)
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.usage) == ("network", None)


def test_interruptions_pass_through() -> None:
    class Enough(Interruption):
        pass

    def watch() -> None:
        raise Enough

    gate = threading.Event()
    answer = streamed(TEXT)
    answer.hold = gate
    with ModelServer(answer) as server, stream.make_client(server.url, "key") as client, pytest.raises(Enough):
        stream.attempt(client, request(), watch)
    gate.set()


@pytest.mark.parametrize(("count", "expected"), [(123, 123), (None, None)])
def test_counting(count: int | None, expected: int | None) -> None:
    with ModelServer(count=count) as server, stream.make_client(server.url, "key") as client:
        assert stream.count_tokens(client, request()) == expected


@pytest.mark.parametrize(("broken", "expected"), [(1, 7), (2, None)])
def test_a_count_is_asked_for_once_more_when_its_connection_breaks(broken: int, expected: int | None) -> None:
    said = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 19\r\n\r\n" + b'{"input_tokens": 7}'

    def answer() -> None:
        for number in range(2):
            with listening.accept()[0] as one:
                one.recv(1 << 16)
                if number >= broken:
                    one.sendall(said)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        thread = threading.Thread(target=answer)
        thread.start()
        with stream.make_client(f"http://127.0.0.1:{listening.getsockname()[1]}", "key") as client:
            assert stream.count_tokens(client, request()) == expected
        thread.join()


# -- deadlines and sizes ---------------------------------------------------------------------------

PING = b'event: ping\ndata: {"type": "ping"}\n\n'
SHORT = stream.Deadlines(first_s=0.3, silence_s=0.3, total_s=30.0)


def dripping(*events: dict[str, Any], forever: bytes = b"") -> Answer:
    return Answer(sse(events), headers={"content-type": "text/event-stream"}, length=False, forever=forever)


@pytest.mark.parametrize("forever", [PING, b""])
def test_pings_are_no_words(forever: bytes) -> None:
    """A stream that is kept open with pings, or with nothing at all, is cut at the silence deadline."""
    gate = threading.Event()
    answer = dripping(*reply(TEXT)[:4], forever=forever)
    answer.hold = gate
    heard: list[int] = []
    with ModelServer(answer) as server, stream.make_client(server.url, "key") as client:
        outcome = stream.attempt(client, request(), lambda: None, SHORT, lambda: heard.append(1))
        gate.set()
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.usage) == ("cut", None)
    assert heard == [1]


def test_a_reply_that_never_begins_is_not_waited_for() -> None:
    gate = threading.Event()
    with ModelServer(Answer(b"", hold=gate, headers={"content-type": "text/event-stream"}, before=gate)) as server:
        with stream.make_client(server.url, "key") as client:
            outcome = stream.attempt(client, request(), lambda: None, SHORT)
        gate.set()
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.usage, outcome.message) == ("network", None, "the endpoint did not answer in time")


def test_words_without_an_end_are_cut_at_the_total_deadline() -> None:
    word = sse([{"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "and "}}])
    with (
        ModelServer(dripping(*reply(TEXT)[:4], forever=word)) as server,
        stream.make_client(server.url, "key") as client,
    ):
        outcome = stream.attempt(client, request(), lambda: None, stream.Deadlines(5.0, 5.0, 0.5))
    assert isinstance(outcome, Failure)
    assert outcome.kind == "cut"
    assert "not complete" in outcome.message


@pytest.mark.parametrize("chunk", [100_000, 8_000_000])
def test_a_reply_of_20_mb_is_a_failure_and_not_the_end_of_the_brain(chunk: int) -> None:
    outcome = once(streamed({"type": "text", "text": "x" * 20_000_000}, chunk=chunk, stop="end_turn"))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.usage) == ("too_large", None)


def test_stopping_is_noticed_between_pings() -> None:
    class Enough(Interruption):
        pass

    seen: list[int] = []

    def watch() -> None:
        seen.append(1)
        if len(seen) > 20:
            raise Enough

    with (
        ModelServer(dripping(*reply(TEXT)[:4], forever=PING)) as server,
        stream.make_client(server.url, "key") as client,
        pytest.raises(Enough),
    ):
        stream.attempt(client, request(), watch)


# -- rate limits -----------------------------------------------------------------------------------


def test_a_used_up_limit_says_when_it_is_filled_again() -> None:
    def at(seconds: float) -> str:
        return (datetime.now(UTC) + timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")

    head = "anthropic-ratelimit-"
    some = {f"{head}requests-remaining": "3", f"{head}requests-reset": at(500)}
    assert retry.used_up_s(some) is None
    none = {
        **some,
        f"{head}input-tokens-remaining": "0",
        f"{head}input-tokens-reset": at(40),
        f"{head}tokens-remaining": "0",
        f"{head}tokens-reset": at(20),
    }
    assert 35 < (retry.used_up_s(none) or 0) <= 40
    assert retry.used_up_s({f"{head}tokens-remaining": "0", f"{head}tokens-reset": "soon"}) is None
    refused = once(error(429, "rate_limit_error", **none))
    assert isinstance(refused, Failure)
    assert 35 < (refused.retry_after_s or 0) <= 40
    told = streamed(TEXT, stop="end_turn")
    told.headers |= none
    kept = once(told)
    assert isinstance(kept, stream.ModelReply)
    assert 35 < (kept.used_up_s or 0) <= 40


def test_a_retry_after_of_2099_is_read_as_it_is() -> None:
    outcome = once(error(429, "rate_limit_error", **{"retry-after": "Fri, 01 Jan 2099 00:00:00 GMT"}))
    assert isinstance(outcome, Failure)
    assert (outcome.retry_after_s or 0) > 365 * 86400
