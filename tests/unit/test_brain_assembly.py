"""A reply put together from its events: however it is cut into pieces, the blocks come out as they are."""

from __future__ import annotations

import base64
import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.brain.api import assembly, stream
from harness.brain.api.bill import Believed, Bounds
from harness.brain.api.retry import Failure
from harness.events.messages_api import parts_of
from harness.events.types import Usage
from harness.protocol.connection import frames
from harness.protocol.connection.struct_json import STRUCT_JSON
from tests.process.brainlib import reply

WIDE = Bounds(sent=50_000, allowed=4000, reserved=30_000)
_WORDS = st.text(st.characters(exclude_categories=("Cs",)), min_size=1, max_size=12)
_TEXT = st.builds(lambda text: {"type": "text", "text": text}, _WORDS)
_THOUGHT = st.builds(lambda text: {"type": "thinking", "thinking": text, "signature": "c2ln"}, _WORDS)
_CALL = st.builds(
    lambda given: {"type": "tool_use", "id": "toolu_1", "name": "exec", "input": given},
    st.dictionaries(_WORDS, _WORDS, max_size=3),
)


def _cut(event: dict[str, Any], size: int) -> list[dict[str, Any]]:
    """The same event in pieces of so many characters."""
    delta = event.get("delta", {})
    name = next((n for n in ("text", "thinking", "partial_json") if n in delta), None)
    if event["type"] != "content_block_delta" or name is None:
        return [event]
    said = delta[name]
    return [{**event, "delta": {**delta, name: said[at : at + size]}} for at in range(0, len(said), size)]


def _taken(events: list[dict[str, Any]]) -> assembly.Assembly:
    found = assembly.Assembly()
    for event in events:
        found.take(json.loads(json.dumps(event)))
    return found


@given(st.lists(st.one_of(_TEXT, _THOUGHT, _CALL), max_size=4), st.integers(1, 20))
def test_pieces_of_any_size_make_the_same_reply(blocks: list[dict[str, Any]], size: int) -> None:
    found = _taken([piece for event in reply(*blocks) for piece in _cut(event, size)])
    assert found.complete
    assert found.closed == set(range(len(blocks)))
    for i, block in enumerate(blocks):
        if block["type"] == "tool_use":
            assert json.loads(found.inputs[i]) == block["input"]
        else:
            assert found.message.content[i] == block


@pytest.mark.parametrize(
    "event",
    [
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta"}},
        {"type": "content_block_delta", "index": 7, "delta": {"type": "text_delta", "text": "a"}},
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}},
        {"type": "content_block_start", "index": 0},
    ],
)
def test_an_event_that_lacks_what_it_must_have_is_no_part_of_a_reply(event: dict[str, Any]) -> None:
    begun = reply({"type": "text", "text": "a"})[:3]
    with pytest.raises((ValueError, TypeError, LookupError)):
        _taken([*begun, event])


def test_nothing_comes_before_the_message() -> None:
    with pytest.raises(assembly.Disorder):
        _taken(reply({"type": "text", "text": "a"})[1:])


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | _WORDS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(_WORDS, inner, max_size=2),
    max_leaves=4,
)
_FIELDS = st.fixed_dictionaries(
    {}, optional={name: _JSON for name in ("index", "message", "content_block", "delta", "usage")}
)
_PIECE = st.fixed_dictionaries(
    {}, optional={name: _JSON for name in ("text", "partial_json", "content", "data", "citation", "stop_reason")}
)


@given(st.integers(1, 7), st.one_of(_FIELDS, st.builds(lambda piece: {"index": 0, "delta": piece}, _PIECE)))
def test_a_kind_that_is_not_known_adds_nothing_whatever_its_fields_hold(at: int, fields: dict[str, Any]) -> None:
    events = reply({"type": "text", "text": "one two three"})
    of_a_block = isinstance(fields.get("delta"), dict) and fields.get("index") == 0
    new = (
        {"type": "content_block_delta", **fields, "delta": {**fields["delta"], "type": "news_delta"}}
        if of_a_block and at > 2
        else {**fields, "type": "news"}
    )
    found = _taken([*events[:at], new, *events[at:]])
    assert found.complete
    assert found.message == _taken(events).message
    assert _taken(events[:1]).take(new) == 0


@pytest.mark.parametrize(
    ("begun", "end"),
    [
        ({"input_tokens": 10}, {"output_tokens": 5}),
        ({"input_tokens": 10, "output_tokens": None}, {"output_tokens": 5}),
        ({}, {"input_tokens": 10, "output_tokens": 5}),
        ({"input_tokens": None, "output_tokens": None}, {"input_tokens": 10, "output_tokens": 5}),
        ({"input_tokens": 10.0, "output_tokens": 1.0}, {"output_tokens": 5.0}),
        ({"input_tokens": 10, "cache_creation": {"ephemeral_5m_input_tokens": None}}, {"output_tokens": 5}),
        (
            {"input_tokens": 10},
            {
                "output_tokens": 5,
                "iterations": [{"type": "message", "input_tokens": 1, "output_tokens": None}, {"type": "x"}, None],
            },
        ),
    ],
)
def test_figures_that_come_in_the_end_need_not_come_before(begun: dict[str, Any], end: dict[str, Any]) -> None:
    events = reply({"type": "text", "text": "a"})
    events[0]["message"]["usage"] = begun
    events[-2]["usage"] = end
    assert _taken(events).bill.believed(WIDE) == Believed(Usage(input=10, output=5))


@pytest.mark.parametrize(
    "end",
    [
        {"output_tokens": 5},
        {"output_tokens": None, "input_tokens": 10},
        {"input_tokens": 10},
        {"output_tokens": 5, "input_tokens": 10.5},
        {"output_tokens": 5, "input_tokens": "10"},
        {"output_tokens": -5, "input_tokens": 10},
        {"output_tokens": 5, "input_tokens": 1e300},
        {"output_tokens": 5, "input_tokens": True},
        {"output_tokens": 5, "input_tokens": 10, "iterations": [{"type": "compaction", "input_tokens": 1}]},
    ],
)
def test_what_is_no_count_in_the_end_counts_as_what_was_reserved(end: dict[str, Any]) -> None:
    events = reply({"type": "text", "text": "a"})
    events[0]["message"]["usage"] = {}
    events[-2]["usage"] = end
    found = _taken(events).bill.believed(WIDE)
    assert found.doubt
    assert found.usage.given in (10, 11, WIDE.reserved)
    assert found.usage.output in (5, WIDE.allowed)


# -- what of it can be kept ------------------------------------------------------------------------


_COST = Usage(input=100, cache_read=20, cache_write_5m=3, output=42)


def _accepted(*events: dict[str, Any]) -> stream.ModelReply | Failure:
    found = _taken(list(events))
    return stream.accept(found, [{"name": "exec", "input_schema": {}}], 1, found.bill.believed(WIDE))


def _said(text: str) -> list[dict[str, Any]]:
    return reply({"type": "text", "text": text}, stop="end_turn", chunk=1 << 20)


def _called(raw: str) -> list[dict[str, Any]]:
    return reply({"type": "tool_use", "id": "toolu_1", "name": "exec", "raw": raw}, chunk=1 << 20)


def _nested(levels: int) -> str:
    return '{"a":' + "[" * (levels - 1) + "]" * (levels - 1) + "}"


def _cited(text: str) -> list[dict[str, Any]]:
    events = _said(text)
    delta = {"type": "citations_delta", "citation": {"type": "char_location"}}
    return [*events[:-3], {"type": "content_block_delta", "index": 0, "delta": delta}, *events[-3:]]


@pytest.mark.parametrize(
    "events",
    [_called('{"a":"' + "€" * 3_900_000 + '"}'), _said("€" * 1_500_000), _cited("x" * 2_500_000)],
    ids=["call", "text", "text that is kept twice"],
)
def test_a_reply_is_measured_in_bytes_of_what_is_kept_and_its_cost_is_known(events: list[dict[str, Any]]) -> None:
    outcome = _accepted(*events)
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.usage) == ("too_large", _COST)


def test_what_is_just_accepted_goes_into_a_frame() -> None:
    outcome = _accepted(*_called('{"a":"' + "€" * ((stream.MAX_CONTENT - 100) // 3) + '"}'))
    assert isinstance(outcome, stream.ModelReply)
    data = base64.b64encode(msgspec.json.encode(parts_of(outcome.content))).decode()
    assert frames.frame(STRUCT_JSON.encode({"id": 1 << 20, "op": "blob", "data": data}))


@pytest.mark.parametrize("levels", [201, 600, 960, 50_000])
def test_an_input_that_is_nested_too_deeply_is_no_reply_and_its_cost_is_known(levels: int) -> None:
    outcome = _accepted(*_called(_nested(levels)))
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.usage) == ("unusable", _COST)
    assert outcome.message == "the input of exec is nested deeper than 200 levels"


def test_an_input_of_as_many_levels_as_may_be_is_one() -> None:
    outcome = _accepted(*_called(_nested(200)))
    assert isinstance(outcome, stream.ModelReply)
    assert outcome.content[0]["input"] == json.loads(_nested(200))


def test_a_block_that_is_nested_too_deeply_is_no_reply() -> None:
    events = _said("a")
    events[2]["content_block"]["more"] = json.loads(_nested(600))
    outcome = _accepted(*events)
    assert isinstance(outcome, Failure)
    assert (outcome.kind, outcome.usage) == ("unusable", _COST)
    assert "nested" in outcome.message


_START = {"input_tokens": 900, "cache_read_input_tokens": 100, "output_tokens": 7}


def _billed(*ends: dict[str, Any]) -> Believed:
    begun = {"id": "m", "model": "x", "usage": dict(_START), "content": []}
    told: list[dict[str, Any]] = [{"type": "message_start", "message": begun}]
    told += [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": end} for end in ends]
    return _taken([*told, {"type": "message_stop"}]).bill.believed(WIDE)


@pytest.mark.parametrize(
    ("ends", "billed"),
    [
        ([{"output_tokens": 50}], Usage(900, 100, 0, 0, 50)),
        ([{"output_tokens": 0, "input_tokens": 0, "cache_read_input_tokens": 0}], Usage(900, 100, 0, 0, 7)),
        ([{"output_tokens": 50}, {"output_tokens": 0}], Usage(900, 100, 0, 0, 50)),
        ([{"output_tokens": 50}, {"output_tokens": 50}], Usage(900, 100, 0, 0, 50)),
        ([{"output_tokens": 9, "input_tokens": 20, "cache_read_input_tokens": 980}], Usage(20, 980, 0, 0, 9)),
        ([{"output_tokens": 9, "input_tokens": 1500}], Usage(1500, 100, 0, 0, 9)),
    ],
    ids=["end only", "all zero", "lower again", "twice", "told apart at last", "more at last"],
)
def test_figures_that_go_down_take_no_charge_back(ends: list[dict[str, Any]], billed: Usage) -> None:
    assert _billed(*ends) == Believed(billed)


@pytest.mark.parametrize("wrong", [-5, 12.5])
def test_what_is_no_count_is_none_beside_figures_that_are_higher(wrong: float) -> None:
    found = _billed({"output_tokens": wrong})
    assert (found.usage, found.doubt) == (Usage(900, 100, 0, 0, WIDE.allowed), f"output_tokens {wrong}")
    found = _billed({"output_tokens": 5, "input_tokens": wrong})
    assert (found.usage, found.doubt) == (Usage(input=WIDE.reserved, output=7), f"input_tokens {wrong}")


@pytest.mark.parametrize("usage", [None, [], "many", 7, {}, {"input_tokens": {}, "output_tokens": []}])
def test_a_bill_in_no_known_form_loses_no_reply(usage: object) -> None:
    events = reply({"type": "text", "text": "a"}, stop="end_turn")
    events[0]["message"]["usage"] = usage
    del events[-2]["usage"]
    found = _taken(events)
    believed = found.bill.believed(WIDE)
    assert believed.usage == Usage(input=WIDE.reserved, output=WIDE.allowed)
    assert believed.doubt
    assert isinstance(_accepted(*events), stream.ModelReply)
