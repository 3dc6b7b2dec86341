"""Parts of a turn: from the blocks of the Messages API and back, and from a blob."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.events import message_parts, messages_api
from harness.events import types as t

CONTENT: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
    {"type": "text", "text": "I will look.", "citations": None},
    {"type": "tool_use", "id": "toolu_1", "name": "exec", "input": {"argv": ["ls"]}, "caller": {"type": "direct"}},
]
PARTS: list[message_parts.Part] = [
    message_parts.Private("anthropic", CONTENT[0]),
    message_parts.Text("I will look."),
    message_parts.Call("toolu_1", "exec", {"argv": ["ls"]}),
]


def test_blocks_are_parts_and_so_is_what_a_blob_holds() -> None:
    assert messages_api.parts_of(CONTENT) == PARTS
    assert message_parts.decode(msgspec.json.encode(PARTS)) == PARTS


def test_every_end_of_a_reply_has_a_word_of_ours() -> None:
    assert set(messages_api.STOPS.values()) == message_parts.STOPS


@pytest.mark.parametrize("blob", [b"", b"{}", b"[1]", b"\xff"])
def test_a_blob_that_holds_no_reply_is_refused(blob: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        message_parts.decode(blob)


@pytest.mark.parametrize(("kind", "data"), [("model.message", {"stop": 3}), ("tool.proposed", {"tool": "exec"})])
def test_a_record_that_does_not_fit_its_type_is_unknown(kind: str, data: dict[str, Any]) -> None:
    line = {"v": 1, "seq": 4, "ts": "2026-11-01T00:00:00.000Z", "type": kind, "actor": "brain", "data": data}
    body = t.decode(json.dumps(line).encode()).body
    assert body == t.Unknown(type=kind, data=data)


@given(
    st.lists(
        st.one_of(
            st.builds(message_parts.Text, st.text()),
            st.builds(message_parts.Call, st.text(), st.text(), st.dictionaries(st.text(), st.integers())),
            st.builds(
                message_parts.Private, st.just("anthropic"), st.fixed_dictionaries({"type": st.just("thinking")})
            ),
        )
    )
)
def test_parts_come_back_from_their_blocks(parts: list[message_parts.Part]) -> None:
    assert messages_api.parts_of(b for p in parts if (b := messages_api.block_of(p)) is not None) == parts


def test_what_another_agent_kept_for_itself_is_not_sent() -> None:
    assert messages_api.block_of(message_parts.Private("another", {"type": "text", "text": "x"})) is None
