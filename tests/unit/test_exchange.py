"""The exchange without input or output: any split of the stream gives the same, and nothing wrong gets through."""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.events import types
from harness.protocol.connection import frames
from harness.protocol.connection.exchange import Answering, Exchange, Push, Refusal, Reply, refusal
from harness.protocol.connection.struct_json import STRUCT_JSON

FIELDS = st.dictionaries(
    st.text(max_size=8).filter(lambda name: name not in ("id", "push", "op")),
    st.one_of(st.text(max_size=20), st.integers(-(2**53), 2**53), st.booleans(), st.none()),
    max_size=4,
)
ASKED = 6
MESSAGES = st.lists(
    st.one_of(
        FIELDS.map(lambda f: {"push": "events", **f}),
        st.tuples(st.integers(-2, 2 * ASKED), FIELDS).map(lambda p: {"id": p[0], "ok": True, **p[1]}),
        st.tuples(st.one_of(st.text(max_size=3), st.none(), st.booleans(), st.floats(0, 9)), FIELDS).map(
            lambda p: {"id": p[0], **p[1]}
        ),
        FIELDS,
    ),
    max_size=12,
)
CUTS = st.lists(st.integers(1, 40), max_size=30)
CODECS = pytest.mark.parametrize("codec", [None, STRUCT_JSON], ids=["standard", "structs"])


def asking(codec: Any, n: int = ASKED) -> Exchange:
    exchange = Exchange(codec) if codec is not None else Exchange()
    numbers = [exchange.request("op", {})[0] for _ in range(n)]
    assert numbers == list(range(1, n + 1))
    return exchange


def pieces(stream: bytes, cuts: Iterable[int]) -> Iterator[bytes]:
    at = 0
    for cut in cuts:
        yield stream[at : at + cut]
        at += cut
    yield stream[at:]


def taken(exchange: Exchange, stream: bytes, cuts: Iterable[int]) -> tuple[list[Reply | Push], str]:
    """What came out, and the name of the error that ended it."""
    out: list[Reply | Push] = []
    try:
        for piece in pieces(stream, cuts):
            out.extend(exchange.take(piece))  # keeps what came before an error
        exchange.end()
    except frames.FrameError as exc:
        return out, type(exc).__name__
    return out, ""


def expected(messages: list[dict[str, Any]]) -> list[Reply | Push]:
    """Pushes in order; of replies the first to each number that was asked."""
    out: list[Reply | Push] = []
    waiting = set(range(1, ASKED + 1))
    for message in json.loads(json.dumps(messages)):
        number = message.get("id")
        if "push" in message:
            out.append(Push(message))
        elif type(number) is int and number in waiting:
            waiting.remove(number)
            out.append(Reply(number, message))
    return out


@CODECS
@given(messages=MESSAGES, cuts=CUTS)
def test_any_split_gives_the_same_and_strangers_are_left_out(
    codec: Any, messages: list[dict[str, Any]], cuts: list[int]
) -> None:
    stream = b"".join(map(frames.encode, messages))
    assert taken(asking(codec), stream, cuts) == (expected(messages), "")


@CODECS
@given(messages=MESSAGES, cuts=CUTS, cut=st.integers(1, 10**6))
def test_half_a_frame_at_the_end_is_named_and_what_came_before_stands(
    codec: Any, messages: list[dict[str, Any]], cuts: list[int], cut: int
) -> None:
    last = frames.encode({"push": "never", "text": "x" * 30})
    stream = b"".join(map(frames.encode, messages)) + last[: 1 + cut % (len(last) - 1)]
    assert taken(asking(codec), stream, cuts) == (expected(messages), "HalfFrame")


@CODECS
@given(
    messages=MESSAGES,
    cuts=CUTS,
    wrong=st.sampled_from(
        [
            (b"\xff\xff\xff\xff", "Oversize"),
            ((frames.MAX_FRAME + 1).to_bytes(4, "big"), "Oversize"),
            (frames.frame(b"[]"), "Garbage"),
            (frames.frame(b"null"), "Garbage"),
            (frames.frame(b""), "Garbage"),
            (frames.frame(b"\xff{"), "Garbage"),
            (frames.frame(b'{"id":1'), "Garbage"),
            (frames.frame(b"[" * 200_000), "Garbage"),
        ]
    ),
)
def test_what_is_no_frame_is_named_and_what_came_before_stands(
    codec: Any, messages: list[dict[str, Any]], cuts: list[int], wrong: tuple[bytes, str]
) -> None:
    stream = b"".join(map(frames.encode, messages)) + wrong[0] + frames.encode({"push": "never"})
    assert taken(asking(codec), stream, cuts) == (expected(messages), wrong[1])


@CODECS
@given(junk=st.binary(max_size=200), cuts=CUTS)
def test_junk_ends_in_a_named_error_or_in_nothing(codec: Any, junk: bytes, cuts: list[int]) -> None:
    whole = taken(asking(codec), junk, [])
    assert taken(asking(codec), junk, cuts) == whole
    assert whole[1] in ("", "Oversize", "Garbage", "HalfFrame")


@given(asked=st.lists(FIELDS, max_size=8), cuts=CUTS, order=st.randoms(use_true_random=False))
def test_both_sides_understand_each_other(asked: list[dict[str, Any]], cuts: list[int], order: Any) -> None:
    exchange = Exchange()
    answering = Answering()
    sent = [exchange.request(f"op{i}", fields) for i, fields in enumerate(asked)]
    requests = [r for piece in pieces(b"".join(f for _, f in sent), cuts) for r in answering.take(piece)]
    assert [(r.number, r.op) for r in requests] == [(n, f"op{i}") for i, (n, _) in enumerate(sent)]
    order.shuffle(requests)
    odd = itertools.cycle((True, False))
    answers = {
        r.number: answering.reply(r.number, {"op": r.op})
        if next(odd)
        else answering.refuse(r.number, {"code": "no", "message": r.op})
        for r in requests
    }
    stream = answering.push({"push": "first"}) + b"".join(answers.values())
    out, error = taken(exchange, stream, cuts)
    assert not error
    assert out[0] == Push({"push": "first"})
    replies = [m for m in out[1:] if isinstance(m, Reply)]
    assert [m.number for m in replies] == [r.number for r in requests]
    for request, reply in zip(requests, replies, strict=True):
        no = refusal(reply.message, "?")
        assert reply.message.get("op") == request.op if no is None else no == Refusal("no", request.op)


def test_who_is_asked_takes_what_has_neither_id_nor_op() -> None:
    (request,) = Answering().take(frames.encode({"x": 1}))
    assert (request.number, request.op, request.message) == (None, "None", {"x": 1})


def test_a_reply_that_nobody_waits_for_any_more_is_left_out() -> None:
    exchange = asking(None, 2)
    exchange.forget(1)
    out, _ = taken(exchange, frames.encode({"id": 1, "ok": True}) + frames.encode({"id": 2, "ok": True}), [])
    assert out == [Reply(2, {"id": 2, "ok": True})]


def test_a_request_larger_than_a_frame_is_not_asked() -> None:
    exchange = Exchange()
    with pytest.raises(frames.Oversize):
        exchange.request("say", {"text": "x" * frames.MAX_FRAME})
    out, _ = taken(exchange, frames.encode({"id": 1, "ok": True}), [])
    assert not out


@pytest.mark.parametrize(
    ("reply", "no"),
    [
        ({"ok": True}, None),
        ({"ok": False, "error": {"code": "c", "message": "m", "hint": "h"}}, Refusal("c", "m", "h")),
        ({"ok": False, "error": {"code": "c"}}, Refusal("c", "silent")),
        ({"ok": False, "error": "text"}, Refusal("error", "text")),
        ({"ok": False}, Refusal("error", "silent")),
        ({}, Refusal("error", "silent")),
    ],
)
def test_refusals_are_values(reply: dict[str, Any], no: Refusal | None) -> None:
    assert refusal(reply, "silent") == no


@CODECS
def test_a_lone_surrogate_is_written_as_a_question_mark(codec: Any) -> None:
    exchange = Exchange(codec) if codec is not None else Exchange()
    body = types.HarnessNote(level="info", text="a\ud800b") if codec is not None else {"text": "a\ud800b"}
    _, frame = exchange.request("append", {"records": [body]})
    (asked,) = Answering().take(frame)
    assert asked.message["records"][0]["text"] == "a?b"
