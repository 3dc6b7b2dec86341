"""An endpoint that answers with more, or more slowly, than anybody waits for or holds, before the first word of a reply
and in place of one.
"""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import anthropic
import pytest

from harness.brain import model_limits
from harness.brain.api import stream, wire
from harness.brain.api.retry import Failure
from harness.domain.model_limits import UNTOLD
from tests.process.brainlib import Answer, ModelServer, error
from tests.process.brainlib import stream as streamed
from tests.unit.test_brain_stream import TEXT, request, request_came

MANY = 4000
"""Pieces after which a trickle ends by itself: nobody waited for the client then."""
BUFFERS = 16 << 20
"""What may lie in the sockets between two ends."""


@contextmanager
def answering(head: bytes, piece: bytes, every_s: float) -> Iterator[tuple[str, list[int]]]:
    """A server that sends a head and then the same piece, until the client goes; and how many bytes it got rid of."""
    sent = [0]
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        with listener.accept()[0] as connection:
            connection.recv(1 << 20)
            connection.sendall(head)
            gone = threading.Event()
            for _ in range(MANY):
                try:
                    connection.sendall(piece)
                except OSError:
                    return
                sent[0] += len(piece)
                gone.wait(every_s)

    serving = threading.Thread(target=serve, daemon=True)
    serving.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}", sent
    finally:
        listener.close()
        serving.join(60)


@pytest.mark.parametrize(
    ("head", "piece"),
    [(b"HTTP/1.1 200 OK\r\nx-a: ", b"y"), (b"", b"HTTP/1.1 102 Processing\r\n\r\n"), (b"HTTP/1.1 200 ", b"O")],
    ids=["a header without an end", "nothing but interim answers", "a status line without an end"],
)
def test_an_answer_whose_head_trickles_has_the_time_of_a_beginning(head: bytes, piece: bytes) -> None:
    with answering(head, piece, 0.002) as (url, _), stream.make_client(url, "key") as client:
        outcome = stream.attempt(client, request(), lambda: None, stream.Deadlines(first_s=0.3))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.message) == ("network", "the endpoint did not answer in time")
    assert outcome.usage is None, "it was asked, and may have been at work"


def _two_on_one_connection(listener: socket.socket, body: bytes, accepted: list[int]) -> None:
    """The second answer begins later than the first one had to."""
    head = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: %d\r\n\r\n" % len(body)
    left = 2
    while left:
        with listener.accept()[0] as connection:
            accepted.append(left)
            while left and request_came(connection):
                threading.Event().wait(0.0 if left == 2 else 0.6)
                connection.sendall(head + body)
                left -= 1


def test_the_next_answer_on_a_connection_has_a_time_of_its_own() -> None:
    accepted: list[int] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        given = (listener, streamed(TEXT, stop="end_turn").body, accepted)
        serving = threading.Thread(target=_two_on_one_connection, args=given, daemon=True)
        serving.start()
        with stream.make_client(f"http://127.0.0.1:{listener.getsockname()[1]}", "key") as client:
            for first_s in (0.5, 60.0):
                outcome = stream.attempt(client, request(), lambda: None, stream.Deadlines(first_s=first_s))
                assert isinstance(outcome, stream.ModelReply)
        serving.join(10)
    assert accepted == [2]


def test_of_an_error_without_an_end_as_much_is_read_as_it_takes_to_know_it() -> None:
    head = b"HTTP/1.1 503 x\r\ncontent-length: 1000000000\r\n\r\n"
    with answering(head, b"e" * (64 << 10), 0.0) as (url, sent), stream.make_client(url, "key") as client:
        outcome = stream.attempt(client, request(), lambda: None)
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.status) == ("server", 503)
    assert sent[0] < BUFFERS


def test_an_error_that_trickles_is_known_by_its_status(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire, "MOST_S", 0.3)
    head = b"HTTP/1.1 429 x\r\ncontent-length: 1000000000\r\n\r\n"
    with answering(head, b"e", 0.002) as (url, sent), stream.make_client(url, "key") as client:
        outcome = stream.attempt(client, request(), lambda: None)
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.status) == ("rate_limit", 429)
    assert sent[0] < MANY


@pytest.mark.parametrize(
    "ask",
    [lambda client: stream.count_tokens(client, request()), lambda client: model_limits.ask(client, "claude-test")],
    ids=["a count of tokens", "what a model takes"],
)
def test_of_an_answer_without_an_end_nothing_is_believed(ask: Callable[[anthropic.Anthropic], object]) -> None:
    head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 1000000000\r\n\r\n"
    with answering(head, b"1" * (64 << 10), 0.0) as (url, sent), stream.make_client(url, "key") as client:
        assert ask(client) in (None, UNTOLD)
    assert sent[0] < BUFFERS


def test_nothing_is_unpacked() -> None:
    """A thousandth of its size arrives of what is packed well, so that no bound on what arrives would hold it."""
    packed = {"content-encoding": "gzip"}
    plain = error(529, "overloaded_error", "word of the endpoint")
    failing = Answer(gzip.compress(plain.body), 529, {**plain.headers, **packed})
    whole = streamed(TEXT, stop="end_turn")
    replying = Answer(gzip.compress(whole.body), 200, {**whole.headers, **packed})
    with ModelServer(failing, replying) as server, stream.make_client(server.url, "key") as client:
        outcomes = [stream.attempt(client, request(), lambda: None) for _ in range(2)]
        assert [headers["accept-encoding"] for headers in server.headers] == ["identity", "identity"]
    failed, replied = outcomes
    assert isinstance(failed, Failure)
    assert isinstance(replied, Failure)
    assert (failed.kind, failed.status) == ("overloaded", 529)
    assert "word of the endpoint" not in failed.message
    assert (replied.kind, replied.usage) == ("server", None)
    assert "compresses" in replied.message


def test_what_an_endpoint_says_in_place_of_a_known_word_is_short_on_record() -> None:
    """A record holds 1 MiB, and a failure that does not fit it would be the end of the brain."""
    with ModelServer(streamed(TEXT, stop="S" * 2_000_000)) as server, stream.make_client(server.url, "key") as client:
        outcome = stream.attempt(client, request(), lambda: None)
    assert isinstance(outcome, Failure)
    assert len(json.dumps(outcome.message)) < 1000


@pytest.mark.parametrize("count", [10**40, -5])
def test_a_count_that_no_request_can_have_is_none(count: int) -> None:
    with ModelServer(count=count) as server, stream.make_client(server.url, "key") as client:
        assert stream.count_tokens(client, request()) is None
