"""Content blocks of Anthropic's Messages API as parts of a turn, and back; its stop reasons as ours."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.events import message_parts

Block = dict[str, Any]

OF = "anthropic"
STOPS = {
    "end_turn": message_parts.DONE,
    "stop_sequence": message_parts.DONE,
    "tool_use": message_parts.CALLS,
    "max_tokens": message_parts.LENGTH,
    "pause_turn": message_parts.PAUSED,
    "compaction": message_parts.PAUSED,
    "model_context_window_exceeded": message_parts.WINDOW,
    "refusal": message_parts.REFUSED,
}
"""https://docs.claude.com/en/api/handling-stop-reasons"""


def parts_of(blocks: Iterable[Block]) -> list[message_parts.Part]:
    """The same turn as parts; what is neither plain text nor a call stays whole, so that nothing is lost."""
    return [_part(block) for block in blocks]


def _part(block: Block) -> message_parts.Part:
    told = {name: value for name, value in block.items() if value is not None}
    text = told.get("text")
    if told.keys() == {"type", "text"} and isinstance(text, str):
        return message_parts.Text(text)
    if told.get("type") == "tool_use":
        given = told.get("input")
        return message_parts.Call(
            str(told.get("id", "")), str(told.get("name", "")), given if isinstance(given, dict) else {}
        )
    return message_parts.Private(OF, block, text if isinstance(text, str) else "")


def block_of(part: message_parts.Part) -> Block | None:
    """The block that stands for a part in a request; None for what another kind of agent kept for itself."""
    match part:
        case message_parts.Text():
            return {"type": "text", "text": part.text}
        case message_parts.Call():
            return {"type": "tool_use", "id": part.ref, "name": part.tool, "input": part.input}
        case message_parts.Private():
            return part.data if part.of == OF else None
