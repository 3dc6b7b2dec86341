"""A reply put together from its events: however it is cut into pieces, the blocks come out as they are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.brain import assembly
from tests.process.brainlib import reply

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
        found.take(assembly.read(json.dumps(event)))
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
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}},
    ],
)
def test_an_event_that_lacks_what_it_must_have_is_no_part_of_a_reply(event: dict[str, Any]) -> None:
    begun = reply({"type": "text", "text": "a"})[:3]
    with pytest.raises((ValueError, TypeError, LookupError)):
        _taken([*begun, event])


def test_nothing_comes_before_the_message() -> None:
    with pytest.raises(assembly.Disorder):
        _taken(reply({"type": "text", "text": "a"})[1:])


def test_a_kind_that_is_not_known_adds_nothing() -> None:
    events = reply({"type": "text", "text": "a"})
    assert _taken([events[0], {"type": "news", "index": 3}, *events[1:]]).message.content == [
        {"type": "text", "text": "a"}
    ]
