"""An endpoint that misbehaves: it gets the key nowhere else, and nothing it says makes the brain fall over or the log
unreadable.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from harness.brain.api import stream
from harness.brain.api.retry import Failure
from harness.events import messages_api
from harness.events import types as t
from harness.tools import registry, validation
from tests.process.brainlib import Answer, ModelServer, reply, sse
from tests.process.brainlib import stream as streamed

KEY = "sk-redirect-canary"
TEXT = {"type": "text", "text": "fine"}
CALL = {"type": "tool_use", "id": "toolu_1", "name": "read_file", "input": {"path": "a"}}


def ask(url: str, key: str = KEY) -> stream.ModelReply | Failure:
    request = stream.AttemptRequest(
        "m",
        9,
        [{"type": "text", "text": "s"}],
        [tool.definition() for tool in registry.TABLE.values()],
        b'[{"role":"user","content":"go"}]',
    )
    with stream.make_client(url, key) as client:
        stream.count_tokens(client, request)
        return stream.attempt(client, request, lambda: None)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_the_key_goes_nowhere(status: int) -> None:
    with ModelServer(streamed(TEXT, stop="end_turn")) as other:
        there = f"{other.url}/v1/messages"
        with ModelServer(script=lambda _: Answer(b"", status, {"location": there}), count=None) as server:
            outcome = ask(server.url)
        assert other.requests == []
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.status) == ("redirect" if status in (301, 308) else "detour", status)
    assert there in outcome.message
    assert KEY not in outcome.message


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
@pytest.mark.parametrize("kind", ["text/html", "text/html; charset=utf-8", "application/xhtml+xml"])
def test_a_redirect_to_a_login_page_is_an_outage_by_name(status: int, kind: str) -> None:
    headers = {"location": "https://portal.example/login?next=/v1/messages", "content-type": kind}
    with ModelServer(script=lambda _: Answer(b"<html>", status, headers), count=None) as server:
        outcome = ask(server.url)
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.status) == ("page", status)
    assert outcome.message == f"it redirects to {headers['location']!r}: log in to the network?"
    assert outcome.usage is not None, "nothing of a reply was begun"


@pytest.mark.parametrize("status", [301, 308])
@pytest.mark.parametrize(
    ("location", "kind"),
    [("https://new.example/v1/messages", "text/html"), ("https://new.example/", ""), ("", "text/html")],
)
def test_an_address_that_moved_for_good_needs_a_person(status: int, location: str, kind: str) -> None:
    """Servers put a page behind every redirect, also where the API itself has moved."""
    headers = {"location": location, "content-type": kind}
    sent = Answer(b"<html>", status, {name: value for name, value in headers.items() if value})
    with ModelServer(script=lambda _: sent, count=None) as server:
        outcome = ask(server.url)
    assert isinstance(outcome, Failure)
    assert outcome.kind == "redirect"


def test_a_redirect_to_nowhere_is_said_in_words() -> None:
    with ModelServer(script=lambda _: Answer(b"", 302, {"retry-after": "7"}), count=None) as server:
        outcome = ask(server.url)
    assert isinstance(outcome, Failure)
    assert outcome.message == "it redirects to an address that it does not name for now"
    assert outcome.retry_after_s == 7


@pytest.mark.parametrize("key", [f"{KEY}\nx", f"{KEY}\x01", f"{KEY}\u2028", f"{KEY} é"])
def test_a_key_that_no_header_can_carry_is_not_quoted(key: str) -> None:
    with ModelServer(script=lambda _: streamed(TEXT, stop="end_turn")) as server:
        outcome = ask(server.url, key)
    assert KEY not in repr(outcome)


def started(**changes: Any) -> Answer:
    events = reply(TEXT, stop="end_turn")
    events[0]["message"] |= changes
    return Answer(sse(events), headers={"content-type": "text/event-stream"}, length=False)


ODD: list[Answer] = [
    started(id=None),
    started(id=5),
    started(id="m" * 3_000_000),
    started(model=None),
    started(model="m" * 3_000_000),
    started(usage=None),
    started(usage={}),
    started(usage={"input_tokens": "5", "output_tokens": 1}),
    started(usage={"input_tokens": -5, "output_tokens": 1}),
    started(usage={"input_tokens": 2**80, "output_tokens": 1}),
    started(usage={"input_tokens": 1.5, "output_tokens": 1}),
    started(content=[{"type": "tool_use", "id": "x", "name": "exec", "input": {"argv": ["true"]}}]),
    started(content=[{"type": "tool_use", "id": "x", "name": "exec", "input": ["argv"]}]),
    started(content="text"),
    started(content=[None]),
    started(stop_details={"type": "refusal", "category": "\ud800"}),
    streamed({"type": "text", "text": "half \ud800 pair"}, stop="end_turn"),
    streamed({**CALL, "name": "read\x1b[31m"}),
    streamed({**CALL, "name": "read\ud800"}),
    streamed({**CALL, "name": "n" * 3_000_000}),
    streamed({**CALL, "id": "toolu_\x9b"}),
    streamed({**CALL, "id": "t" * 3_000_000}),
    streamed({**CALL, "raw": '{"path": "a", "limit": 1e999}'}),
    streamed({**CALL, "raw": '{"path": "a", "limit": ' + "9" * 400 + "}"}),
    streamed({**CALL, "raw": '{"path": "a", "limit": ' + "9" * 9000 + "}"}, chunk=9000),
    streamed({**CALL, "raw": '{"path": ' + "[" * 150 + "]" * 150 + "}"}),
    streamed({**CALL, "raw": '{"path": ' + "[" * 50_000 + "]" * 50_000 + "}"}, chunk=200_000),
    streamed({**CALL, "raw": '{"path": "a", "path": "b"}'}),
    streamed(CALL, {**CALL, "name": "exec"}),
    Answer(b'event: message_start\ndata: "text"\n\n', headers={"content-type": "text/event-stream"}, length=False),
    Answer(b"event: message_start\ndata: [[[\n\n", headers={"content-type": "text/event-stream"}, length=False),
    Answer(b"<html>", headers={"content-type": "text/html"}),
    Answer(b"\xff\xfe\x00", headers={"content-type": "text/event-stream"}, length=False),
]


@pytest.mark.filterwarnings("ignore:Pydantic serializer warnings")
@pytest.mark.parametrize("answer", ODD, ids=range(len(ODD)))
def test_an_odd_reply_is_a_value_that_the_log_can_hold(answer: Answer) -> None:
    with ModelServer(answer) as server:
        outcome = ask(server.url)
    if isinstance(outcome, Failure):
        body: t.Body = t.ModelFailed(
            request_id="r1", attempt=1, kind=outcome.kind, message=outcome.message, status=outcome.status
        )
    else:
        body = t.ModelMessage(
            request_id="r1",
            message_id=outcome.message_id,
            model=outcome.model,
            stop=messages_api.STOPS[outcome.stop_reason],
            usage=outcome.usage,
            cost_nano=0,
            parts=messages_api.parts_of(outcome.content),
            price_source="",
            ms=outcome.ms,
        )
    wire = msgspec.json.encode(t.to_wire(body))  # strict about half characters, as the link to the keeper is
    assert len(wire) < 64 * 1024
    data = json.loads(wire)["data"]
    assert msgspec.convert(data, type(body)) == body
    if isinstance(outcome, stream.ModelReply):
        assert min(msgspec.structs.astuple(outcome.usage)) >= 0
        for block in outcome.content:
            if block["type"] == "tool_use":
                validation.validate(block["name"], block["input"])
