"""A reply put together from the events of its stream; pure.

The SDK would make objects of several kinds of each event, and a snapshot of the whole message again and again. What is
kept here is what the log keeps: the blocks as they were sent, with what their deltas added.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import get_args

import msgspec

from harness.events.blocks import Block
from harness.events.types import Usage

_SERVER_TOOLS = frozenset({"server_tool_use", "mcp_tool_use"})
_MOST_COUNTED = 1 << 40
_COMPACTION = "compaction"


_Number = int | float | None
"""What stands for a count, which a proxy may write as ``10.0``; whether it is one is asked when all have come."""


class CacheWrites(msgspec.Struct, frozen=True):
    """Tokens written to the prompt cache, by how long they are kept."""

    ephemeral_5m_input_tokens: _Number = 0
    ephemeral_1h_input_tokens: _Number = 0


class _Read(msgspec.Struct):
    input_tokens: _Number = None
    output_tokens: _Number = None
    cache_creation_input_tokens: _Number = None
    cache_read_input_tokens: _Number = None
    cache_creation: CacheWrites | None = None


class Billed(_Read):
    """The figures of a message, as the endpoint counts them; ``iterations``: its readings, of kinds that only it
    knows.
    """

    iterations: list[object] | None = None


class Message(msgspec.Struct):
    """What has come of a reply; ``content`` as the next request sends it back."""

    id: str
    model: str
    usage: Billed
    content: list[Block]
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


class _Total(msgspec.Struct):
    """Figures at the end of a message: totals, in which what does not apply is left out. Where they are lower than what
    was told before, what was told before counts: it may be billed.
    """

    output_tokens: int | float
    input_tokens: _Number = None
    cache_creation_input_tokens: _Number = None
    cache_read_input_tokens: _Number = None
    iterations: list[object] | None = None


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
    usage: _Total


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
                _end(message, event.delta, event.usage)
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


def _end(message: Message, stop: _Stop, total: _Total) -> None:
    message.stop_reason = stop.stop_reason
    message.stop_details = stop.stop_details
    usage = message.usage
    usage.output_tokens = max(_count(usage.output_tokens or 0), _count(total.output_tokens))
    told = (
        _last(total.input_tokens, usage.input_tokens),
        _last(total.cache_creation_input_tokens, usage.cache_creation_input_tokens),
        _last(total.cache_read_input_tokens, usage.cache_read_input_tokens),
    )
    if sum(n or 0 for n in told) >= _given(usage):
        usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens = told
    if total.iterations is not None:
        usage.iterations = total.iterations


def _last(end: _Number, before: _Number) -> _Number:
    return before if end is None else _count(end)


def _given(usage: Billed) -> int | float:
    """Tokens of the input as they were told before: figures that go down take nothing back."""
    return sum(n or 0 for n in (usage.input_tokens, usage.cache_creation_input_tokens, usage.cache_read_input_tokens))


def usage_of(billed: Billed) -> Usage:
    """Tokens as the ledger counts them; cache writes without a breakdown count as 5-minute writes. A compaction that
    the endpoint made by itself is billed beside the figures of the message, so it is added.

    Raises ValueError on what is no count.
    """
    return _counted(billed) + compaction_of(billed)


def compaction_of(billed: Billed) -> Usage:
    """What a compaction that the endpoint made by itself took. Raises ValueError on what is no count."""
    made = [one for one in billed.iterations or () if isinstance(one, dict) and one.get("type") == _COMPACTION]
    return sum((_counted(msgspec.convert(one, _Read)) for one in made), Usage())


def _counted(u: _Read) -> Usage:
    written = _count(u.cache_creation_input_tokens or 0)
    by_age = u.cache_creation or CacheWrites()
    hour = _count(by_age.ephemeral_1h_input_tokens or 0)
    five = max(_count(by_age.ephemeral_5m_input_tokens or 0), written - hour)
    return Usage(_count(u.input_tokens), _count(u.cache_read_input_tokens or 0), five, hour, _count(u.output_tokens))


def _count(n: _Number) -> int:
    if n is None or not 0 <= n <= _MOST_COUNTED or n != int(n):
        raise ValueError(f"the endpoint reports a usage that is none: {n}")
    return int(n)
