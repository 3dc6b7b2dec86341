"""Content blocks of Anthropic's Messages API as parts of a turn, and back; its stop reasons as ours.

Logs written before parts had a name of their own hold the blocks themselves: `parts_of` reads those too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.events import said

Block = dict[str, Any]

OF = "anthropic"
STOPS = {
    "end_turn": said.DONE,
    "stop_sequence": said.DONE,
    "tool_use": said.CALLS,
    "max_tokens": said.LENGTH,
    "pause_turn": said.PAUSED,
    "compaction": said.PAUSED,
    "model_context_window_exceeded": said.WINDOW,
    "refusal": said.REFUSED,
}
"""https://docs.claude.com/en/api/handling-stop-reasons"""


def parts_of(blocks: Iterable[Block]) -> list[said.Part]:
    """The same turn as parts; what is neither plain text nor a call stays whole, so that nothing is lost."""
    return [_part(block) for block in blocks]


def _part(block: Block) -> said.Part:
    told = {name: value for name, value in block.items() if value is not None}
    text = told.get("text")
    if told.keys() == {"type", "text"} and isinstance(text, str):
        return said.Text(text)
    if told.get("type") == "tool_use":
        given = told.get("input")
        return said.Call(str(told.get("id", "")), str(told.get("name", "")), given if isinstance(given, dict) else {})
    return said.Private(OF, block, text if isinstance(text, str) else "")


def block_of(part: said.Part) -> Block | None:
    """The block that stands for a part in a request; None for what another kind of agent kept for itself."""
    match part:
        case said.Text():
            return {"type": "text", "text": part.text}
        case said.Call():
            return {"type": "tool_use", "id": part.ref, "name": part.tool, "input": part.input}
        case said.Private():
            return part.data if part.of == OF else None
