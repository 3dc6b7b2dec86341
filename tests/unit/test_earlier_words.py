"""Records of earlier versions are read in today's words, and what nobody wrote stays unknown."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.events import message_parts, messages_api, upcast
from harness.events import types as t

CONTENT: list[dict[str, Any]] = [
    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
    {"type": "text", "text": "I will look.", "citations": None},
    {"type": "tool_use", "id": "toolu_1", "name": "exec", "input": {"argv": ["ls"]}, "caller": {"type": "direct"}},
]
PARTS = [
    message_parts.Private("anthropic", CONTENT[0]),
    message_parts.Text("I will look."),
    message_parts.Call("toolu_1", "exec", {"argv": ["ls"]}),
]
USAGE = {"input": 3}


def record(kind: str, data: dict[str, Any]) -> t.Body:
    line = {"v": 1, "seq": 4, "ts": "2026-11-01T00:00:00.000Z", "type": kind, "actor": "brain", "data": data}
    return t.decode(json.dumps(line).encode()).body


def reply(**more: Any) -> t.Body:
    named = {"request_id": "r1", "message_id": "m1", "model": "m", "usage": USAGE, "cost_nano": 7}
    return record("model.message", {**named, **more})


@pytest.mark.parametrize(("reason", "stop"), messages_api.STOPS.items())
def test_a_reply_in_blocks_is_a_reply_in_parts(reason: str, stop: str) -> None:
    body = reply(stop_reason=reason, content=CONTENT)
    assert isinstance(body, t.ModelMessage)
    assert (body.stop, body.parts, body.cost_nano) == (stop, PARTS, 7)


def test_every_end_of_a_reply_has_a_word_of_ours() -> None:
    assert set(messages_api.STOPS.values()) == message_parts.STOPS


def test_a_reply_in_a_blob_is_found_there() -> None:
    body = reply(stop_reason="end_turn", content_blob={"sha": "f" * 64, "bytes": 9})
    assert isinstance(body, t.ModelMessage)
    assert body.parts_blob == t.BlobRef("f" * 64, 9)
    assert upcast.parts_in(json.dumps(CONTENT).encode()) == PARTS


@pytest.mark.parametrize("blob", [b"", b"{}", b"[1]", b"\xff"])
def test_a_blob_that_holds_no_reply_is_refused(blob: bytes) -> None:
    with pytest.raises(ValueError, match=r"\S"):
        upcast.parts_in(blob)


@pytest.mark.parametrize(("tool_use_id", "by_harness"), [("toolu_1", False), ("", True)])
def test_a_model_that_calls_the_harness_s_tool_has_proved_nothing_in_old_logs_either(
    tool_use_id: str, by_harness: bool
) -> None:
    named = {"call_id": "c1.0", "tool": "check", "input": {"command": "true"}}
    body = record("tool.proposed", {**named, **({"tool_use_id": tool_use_id} if tool_use_id else {})})
    assert isinstance(body, t.ToolProposed)
    assert body.by_harness is by_harness


def test_what_no_version_wrote_stays_unknown() -> None:
    assert isinstance(reply(), t.Unknown)
    assert isinstance(reply(stop_reason=3), t.Unknown)
    assert isinstance(record("tool.proposed", {"tool": "exec"}), t.Unknown)


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
