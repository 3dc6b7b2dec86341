"""A reply put together from the events of its stream; pure.

The SDK would make objects of several kinds of each event, and a snapshot of the whole message again and again. What is
kept here is what the log keeps: the blocks as they were sent, with what their deltas added.
"""

from __future__ import annotations

import json
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from harness.events.blocks import Block
from harness.events.types import Usage

_SERVER_TOOLS = frozenset({"server_tool_use", "mcp_tool_use"})
_MOST_COUNTED = 1 << 40
_COMPACTION = "compaction"


class CacheWrites(msgspec.Struct, frozen=True):
    """Tokens written to the prompt cache, by how long they are kept."""

    ephemeral_5m_input_tokens: int = 0
    ephemeral_1h_input_tokens: int = 0


class _Read(msgspec.Struct):
    input_tokens: int
    output_tokens: int
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation: CacheWrites | None = None


class Reading(_Read):
    """One of several readings of a request, each billed for itself."""

    type: str = ""


class Billed(_Read):
    """The figures of a message, as the endpoint counts them."""

    iterations: list[Reading] | None = None


class Message(msgspec.Struct):
    """What has come of a reply; ``content`` as the next request sends it back."""

    id: str
    model: str
    usage: Billed
    content: list[Block]
    stop_reason: str | None = None
    stop_details: dict[str, Any] | None = None


class _Piece(msgspec.Struct):
    """The delta of a block, by its ``type``, or of the message."""

    type: str = ""
    text: str | UnsetType = UNSET
    partial_json: str | UnsetType = UNSET
    thinking: str | UnsetType = UNSET
    signature: str | UnsetType = UNSET
    citation: dict[str, Any] | UnsetType = UNSET
    content: str | None = None
    encrypted_content: str | None = None
    data: str | None = None
    stop_reason: str | None = None
    stop_details: dict[str, Any] | None = None


class _Total(msgspec.Struct):
    """Figures at the end of a message: totals, in which what does not apply is left out."""

    output_tokens: int
    input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    iterations: list[Reading] | None = None


class Event(msgspec.Struct):
    """One event of a stream; which fields it has depends on its ``type``."""

    type: str
    index: int | UnsetType = UNSET
    message: Message | UnsetType = UNSET
    content_block: Block | UnsetType = UNSET
    delta: _Piece | UnsetType = UNSET
    usage: _Total | UnsetType = UNSET

    @property
    def size(self) -> int:
        """Characters of content that it brings."""
        if self.type != "content_block_delta" or not self.delta:
            return 0
        d = self.delta
        return sum(len(part) for part in (d.text, d.partial_json, d.thinking, d.data, d.content) if part)


class Disorder(ValueError):
    """An event that does not fit what came before it."""


_decode = msgspec.json.Decoder(Event).decode


def read(data: str) -> Event:
    """The event in the data of a server-sent one. Raises ValueError."""
    try:
        return _decode(data)
    except msgspec.DecodeError:  # halves of surrogate pairs are no reason to lose a reply
        return msgspec.convert(json.loads(data), Event)


class Assembly:
    """Takes the events of one stream in their order."""

    def __init__(self) -> None:
        self._message: Message | None = None
        self.inputs: dict[int, str] = {}
        """The input of each call, by the block's index, as it was sent."""
        self.closed: set[int] = set()
        self.complete = False

    @property
    def message(self) -> Message:
        """Raises Disorder before the first event."""
        if self._message is None:
            raise Disorder("the stream did not begin with a message")
        return self._message

    def take(self, event: Event) -> None:
        """Add what it says; kinds that are not known add nothing. Raises Disorder, TypeError, LookupError."""
        if self._message is None and event.type == "message_start":
            self._message = _given(event.message)
            return
        message = self.message
        match event.type:
            case "content_block_start":
                block = _given(event.content_block)
                message.content.append(block)
                if block["type"] == "fallback":  # it names the model that served the reply in the end
                    message.model = str(block["to"]["model"])
            case "content_block_delta":
                self._add(_given(event.index), _given(event.delta))
            case "content_block_stop":
                self._close(_given(event.index))
            case "message_delta":
                _end(message, _given(event.delta), _given(event.usage))
            case "message_stop":
                self.complete = True

    def _add(self, index: int, piece: _Piece) -> None:
        block = self.message.content[index]
        match piece.type, block["type"]:
            case "text_delta", "text":
                block["text"] += piece.text
            case "input_json_delta", _:
                self.inputs[index] = self.inputs.get(index, "") + _given(piece.partial_json)
            case "citations_delta", "text":
                block["citations"] = [*(block.get("citations") or ()), _given(piece.citation)]
            case "thinking_delta", "thinking":
                block["thinking"] += piece.thinking
            case "signature_delta", "thinking":
                block["signature"] = _given(piece.signature)
            case "compaction_delta", "compaction":
                block |= {"content": piece.content, "encrypted_content": piece.encrypted_content}

    def _close(self, index: int) -> None:
        self.closed.add(index)
        block = self.message.content[index]
        if block["type"] in _SERVER_TOOLS and (said := self.inputs.get(index)):
            block["input"] = json.loads(said)


def _given(value: Any) -> Any:
    if value is UNSET:
        raise Disorder("an event lacks what its kind must have")
    return value


def _end(message: Message, piece: _Piece, total: _Total) -> None:
    message.stop_reason = piece.stop_reason
    message.stop_details = piece.stop_details
    usage = message.usage
    usage.output_tokens = total.output_tokens
    if total.input_tokens is not None:
        usage.input_tokens = total.input_tokens
    if total.cache_creation_input_tokens is not None:
        usage.cache_creation_input_tokens = total.cache_creation_input_tokens
    if total.cache_read_input_tokens is not None:
        usage.cache_read_input_tokens = total.cache_read_input_tokens
    if total.iterations is not None:
        usage.iterations = total.iterations


def usage_of(billed: Billed) -> Usage:
    """Tokens as the ledger counts them; cache writes without a breakdown count as 5-minute writes. A compaction that
    the endpoint made by itself is billed beside the figures of the message, so it is added.

    Raises ValueError on what is no count.
    """
    return _counted(billed) + compaction_of(billed)


def compaction_of(billed: Billed) -> Usage:
    """What a compaction that the endpoint made by itself took. Raises ValueError on what is no count."""
    made = [one for one in billed.iterations or [] if one.type == _COMPACTION]
    return sum((_counted(one) for one in made), Usage())


def _counted(u: _Read) -> Usage:
    written = u.cache_creation_input_tokens or 0
    by_age = u.cache_creation or CacheWrites()
    hour = by_age.ephemeral_1h_input_tokens
    five = max(by_age.ephemeral_5m_input_tokens, written - hour)
    counted = (u.input_tokens, u.cache_read_input_tokens or 0, five, hour, u.output_tokens)
    if not all(0 <= n <= _MOST_COUNTED for n in counted):
        raise ValueError(f"the endpoint reports a usage that is none: {counted}")
    return Usage(*counted)
