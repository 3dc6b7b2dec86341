"""A reply put together from the events of its stream; pure.

The SDK would make objects of several kinds of each event, and a snapshot of the whole message again and again. What is
kept here is what the log keeps: the blocks as they were sent, with what their deltas added.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import get_args

import msgspec

from harness.brain.api.bill import Bill
from harness.events.messages_api import Block

_SERVER_TOOLS = frozenset({"server_tool_use", "mcp_tool_use"})
_COMPACTION = "compaction"


class Message(msgspec.Struct):
    """What has come of a reply; ``content`` as the next request sends it back, ``usage`` in whatever form."""

    id: str
    model: str
    content: list[Block]
    usage: object = None
    stop_reason: str | None = None
    stop_details: dict[str, object] | None = None


class _Delta(msgspec.Struct):
    @property
    def size(self) -> int:
        """Characters of content."""
        return 0


class _Text(_Delta, tag="text_delta"):
    text: str

    @property
    def size(self) -> int:
        return len(self.text)


class _Json(_Delta, tag="input_json_delta"):
    partial_json: str

    @property
    def size(self) -> int:
        return len(self.partial_json)


class _Thinking(_Delta, tag="thinking_delta"):
    thinking: str

    @property
    def size(self) -> int:
        return len(self.thinking)


class _Signature(_Delta, tag="signature_delta"):
    signature: str


class _Citation(_Delta, tag="citations_delta"):
    citation: dict[str, object]


class _Compaction(_Delta, tag="compaction_delta"):
    content: str | None = None
    encrypted_content: str | None = None

    @property
    def size(self) -> int:
        return len(self.content or "")


_Piece = _Text | _Json | _Thinking | _Signature | _Citation | _Compaction


class _Stop(msgspec.Struct):
    stop_reason: str | None = None
    stop_details: dict[str, object] | None = None


class Event(msgspec.Struct):
    """One event of a stream; of a kind that is not known, unless it is one of those below."""

    @property
    def size(self) -> int:
        """Characters of content that it brings."""
        return 0


class Begun(Event, tag="message_start"):
    """The message, with nothing in it yet."""

    message: Message


class _Opened(Event, tag="content_block_start"):
    content_block: Block


class _Added(Event, tag="content_block_delta"):
    index: int
    delta: _Piece

    @property
    def size(self) -> int:
        return self.delta.size


class _Closed(Event, tag="content_block_stop"):
    index: int


class _Ended(Event, tag="message_delta"):
    delta: _Stop
    usage: object = None


class _Done(Event, tag="message_stop"):
    pass


_Known = Begun | _Opened | _Added | _Closed | _Ended | _Done


def _tags(kinds: object) -> frozenset[object]:
    return frozenset(kind.__struct_config__.tag for kind in get_args(kinds))


_EVENTS = _tags(_Known)
_PIECES = _tags(_Piece)
_decode: Callable[[str], Event] = msgspec.json.Decoder(_Known).decode


class Disorder(ValueError):
    """An event that does not fit what came before it."""


def read(data: str) -> Event:
    """The event in the data of a server-sent one. Raises ValueError."""
    try:
        return _decode(data)
    except msgspec.DecodeError:  # halves of surrogate pairs are no reason to lose a reply, and nor is a newer kind
        told = json.loads(data)
    return Event() if _is_new(told) else msgspec.convert(told, _Known)


def _is_new(told: object) -> bool:
    """True for an event, or a delta of a block, that has a kind and one that is not known."""
    match told:
        case {"type": "content_block_delta", "delta": {"type": str(kind)}}:
            return kind not in _PIECES
        case {"type": str(kind)}:
            return kind not in _EVENTS
    return False


class Assembly:
    """Takes the events of one stream in their order."""

    def __init__(self) -> None:
        self._message: Message | None = None
        self.inputs: dict[int, str] = {}
        """The input of each call, by the block's index, as it was sent."""
        self.closed: set[int] = set()
        self.complete = False
        self.bill = Bill()

    @property
    def begun(self) -> bool:
        """Whether the reply has begun: from here on it may be billed."""
        return self._message is not None

    @property
    def message(self) -> Message:
        """Raises Disorder before the first event."""
        if self._message is None:
            raise Disorder("the stream did not begin with a message")
        return self._message

    def take(self, event: Event) -> None:
        """Add what it says; kinds that are not known add nothing. Raises Disorder, TypeError, LookupError."""
        if self._message is None and isinstance(event, Begun):
            self._message = event.message
            self.bill.take(event.message.usage)
            return
        message = self.message
        match event:
            case _Added():
                self._add(message.content[event.index], event)
            case _Opened():
                message.content.append(event.content_block)
                if event.content_block["type"] == "fallback":  # it names the model that served the reply in the end
                    message.model = str(event.content_block["to"]["model"])
            case _Closed():
                self._close(event.index)
            case _Ended():
                message.stop_reason = event.delta.stop_reason
                message.stop_details = event.delta.stop_details
                self.bill.take(event.usage)
            case _Done():
                self.complete = True

    def _add(self, block: Block, event: _Added) -> None:
        piece = event.delta
        kind = block["type"]
        match piece:
            case _Text() if kind == "text":
                block["text"] += piece.text
            case _Json():
                self.inputs[event.index] = self.inputs.get(event.index, "") + piece.partial_json
            case _Thinking() if kind == "thinking":
                block["thinking"] += piece.thinking
            case _Signature() if kind == "thinking":
                block["signature"] = piece.signature
            case _Citation() if kind == "text":
                block["citations"] = [*(block.get("citations") or ()), piece.citation]
            case _Compaction() if kind == _COMPACTION:
                block |= {"content": piece.content, "encrypted_content": piece.encrypted_content}

    def _close(self, index: int) -> None:
        self.closed.add(index)
        block = self.message.content[index]
        if block["type"] in _SERVER_TOOLS and (said := self.inputs.get(index)):
            block["input"] = json.loads(said)
