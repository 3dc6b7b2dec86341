"""The log as the model sees it: messages with cache breakpoints, old tool results cleared as a derived view, and the
size to reserve for.

The log is never changed. Pairs of tool_use and tool_result stay together; what the layers of the beginning show stands
first, the goal in its own words before all.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from harness.brain import prompt
from harness.brain.context.clearing import cleared_input, cleared_result
from harness.brain.context.results import NEVER_RAN, told
from harness.brain.context.room import KEEP_TURNS
from harness.brain.context.sizes import PER_TOKEN, shown
from harness.brain.conversation_turns import DROPPED, ModelTurn, UserTurn
from harness.brain.layers import beginning
from harness.brain.view import View
from harness.domain import request_layers
from harness.domain.calls.call_id import name_call
from harness.events import message_parts
from harness.events.messages_api import Block, block_of

Message = dict[str, Any]

_CACHE: Block = {"type": "ephemeral"}
_HOUR: Block = {**_CACHE, "ttl": "1h"}
_OPEN = 4  # messages that may still get blocks or cache breakpoints: the two newest user turns are among them
_PER_BLOCK = 32  # tokens of framing per message or block that the wire does not show


class Unanswered(Exception):
    """A call of the newest reply has no result: the conversation cannot be sent."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """``encoded``: the messages as sent, a JSON array; ``delivers``: the calls whose results the model sees for the
    first time.

    ``added`` bounds the tokens of what was said after the newest reply; ``layers`` are about the tokens of its parts.
    """

    encoded: bytes
    added: int
    delivers: tuple[str, ...]
    layers: dict[str, int]

    @property
    def messages(self) -> list[Message]:
        """The messages, decoded."""
        found: list[Message] = json.loads(self.encoded)
        return found


class Kept(msgspec.Struct, frozen=True):
    """A conversation at rest."""

    closed: list[msgspec.Raw]
    open: list[Message]
    starts: dict[int, int]
    whole: dict[int, int]
    taken: int
    cleared: int
    keep: int
    beginning: list[tuple[str, str]]


class Talk:
    """A conversation taken in turn by turn and kept as it is sent, so that a request costs what is new in it and
    nothing is held twice.
    """

    def __init__(self) -> None:
        self._closed: list[bytes] = []
        self._open: list[Message] = []
        self._starts: dict[int, int] = {}
        """By turn of the model: the number of the message that begins with it or goes on with it."""
        self._whole: dict[int, int] = {}
        """By turn that is not cleared: the number of the message that holds its results."""
        self._taken = -1
        self._cleared = -1
        self._keep = -1
        self._beginning: list[tuple[str, str]] = []
        """(layer, text) of the blocks that stand first."""
        self._begun = False

    def kept(self) -> Kept:
        """All of it, to be taken up again by `of`; made before the next turn is taken in."""
        closed = [msgspec.Raw(message) for message in self._closed]
        return Kept(
            closed,
            self._open,
            self._starts,
            self._whole,
            self._taken,
            self._cleared,
            self._keep,
            self._beginning,
        )

    @classmethod
    def of(cls, kept: Kept) -> Talk:
        """The conversation again."""
        talk = cls()
        talk._closed = [bytes(message) for message in kept.closed]
        talk._open = kept.open
        talk._starts = kept.starts
        talk._whole = kept.whole
        talk._taken = kept.taken
        talk._cleared = kept.cleared
        talk._keep = kept.keep
        talk._beginning = kept.beginning
        talk._begun = bool(talk._closed or talk._open)
        return talk

    def take(self, v: View) -> None:
        """Take in all turns before the newest reply; these are final but for clearing and a new beginning.

        Raises Unanswered.
        """
        if not self._begun:
            self._begun = True
            self._beginning = beginning(v)
            self._open.append({"role": "user", "content": _blocks_of(self._beginning)})
        if v.keep > self._keep:
            self._begin_anew(v)
        last = v.last_model
        for turn in v.turns:
            if last is not None and turn.seq < last.seq and turn.seq > self._taken:
                self._taken = turn.seq
                if turn.seq >= v.keep:
                    self._say(
                        v, turn, self._open, calls=isinstance(turn, ModelTurn) and turn.stop == message_parts.CALLS
                    )
        if v.cleared_before > self._cleared:
            self._clear(v.cleared_before)
        self._begin_as_now(v)
        while len(self._open) > _OPEN:
            self._closed.append(_encode(self._open.pop(0)))

    def build(self, v: View, last_words: str = "", *, hour: bool = False) -> Conversation:
        """The whole conversation, with ``last_words`` of the harness that no later request repeats, cached for five
        minutes or for an ``hour``.

        Raises Unanswered when a call of any kept reply has no result.
        """
        self.take(v)
        messages = [{**m, "content": list(m["content"])} for m in self._open]
        delivers: list[str] = []
        newest = len(self._closed) + len(messages)
        for turn in v.turns:
            if turn.seq <= self._taken or turn.seq < v.keep:
                continue
            calls = isinstance(turn, ModelTurn) and turn.stop == message_parts.CALLS and not v.finished
            self._say(v, turn, messages, calls=calls)
            if isinstance(turn, ModelTurn) and calls:
                delivers = [turn.call_id(i) for i in range(len(turn.calls))]
        if v.finish_seq >= 0 and not v.finished:
            _add(messages, "user", [_text(prompt.FINISH)])
        _add(messages, "user", [_text(last_words)])
        added = 0
        for message in reversed(messages):
            if message["role"] == "assistant":
                break
            added += size_bound([message])
        _breakpoints(messages, hour)
        encoded = b"[" + b",".join([*self._closed, *map(_encode, messages)]) + b"]"
        return Conversation(encoded, added, tuple(delivers), self._layers(v, messages, newest, len(encoded)))

    def _say(self, v: View, turn: ModelTurn | UserTurn, messages: list[Message], *, calls: bool) -> None:
        """Add one turn, with its results when it has ``calls``."""
        if isinstance(turn, UserTurn):
            _add(messages, "user", [_text(turn.text)])
            return
        if turn.stop in DROPPED or turn.only_thought:
            return
        results = [_result(v, turn, i) for i in range(len(turn.calls))] if calls else []
        blocks = _blocks(turn.parts, calls)
        if turn.seq < v.cleared_before:
            blocks = [_short(block, "") for block in blocks]
        added = _add(messages, "assistant", blocks)
        if added and messages is self._open:
            self._starts[turn.seq] = len(self._closed) + len(messages) - 1
        if results:
            _add(messages, "user", results)
            if messages is self._open:
                self._whole[turn.seq] = len(self._closed) + len(messages) - 1

    def _clear(self, before: int) -> None:
        """The turns before record ``before`` stand in their short forms from now on."""
        self._cleared = before
        for seq in [seq for seq in self._whole if seq < before]:
            number = self._whole.pop(seq)
            self._shorten(number - 1, seq)
            self._shorten(number, seq)

    def _shorten(self, number: int, seq: int) -> None:
        at = number - len(self._closed)
        message = self._open[at] if at >= 0 else json.loads(self._closed[number])
        results = 0
        for index, block in enumerate(message["content"]):
            message["content"][index] = _short(block, name_call(seq, results))
            results += block.get("type") == "tool_result"
        if at < 0:
            self._closed[number] = _encode(message)

    def _begin_anew(self, v: View) -> None:
        """The goal, the hand-off, then the turns that stay."""
        self._keep = v.keep
        first = min((number for seq, number in self._starts.items() if seq >= v.keep), default=-1)
        end = len(self._closed) + len(self._open)
        gone = (first if first >= 0 else end) - 1
        self._beginning = beginning(v)
        first_message: Message = {"role": "user", "content": _blocks_of(self._beginning)}
        if gone + 1 < len(self._closed):
            self._closed[: gone + 1] = [_encode(first_message)]
        else:
            self._open[: gone + 1 - len(self._closed)] = [first_message]
            self._closed.clear()
        self._starts = {seq: number - gone for seq, number in self._starts.items() if number > gone}
        self._whole = {seq: number - gone for seq, number in self._whole.items() if number > gone}

    def _begin_as_now(self, v: View) -> None:
        """Show the layers as they are now: one of them may have changed since the last request."""
        now = beginning(v)
        if now == self._beginning:
            return
        first: Message = json.loads(self._closed[0]) if self._closed else self._open[0]
        first["content"][: len(self._beginning)] = _blocks_of(now)
        self._beginning = now
        if self._closed:
            self._closed[0] = _encode(first)

    def _layers(self, v: View, messages: list[Message], newest: int, size: int) -> dict[str, int]:
        """About how many tokens of ``size`` bytes of messages are what; the newest reply begins with message
        ``newest``.
        """
        held = dict.fromkeys(request_layers.ORDER[1:], 0)
        for name, text in self._beginning:
            held[name] += len(_encode(_text(text)))
        before = sum(held.values())
        starts = [self._starts.get(turn.seq, newest) for turn in v.sizes[-KEEP_TURNS:]]
        if starts:
            at = min(starts)
            closed = self._closed[at:]
            rest = messages[max(0, at - len(self._closed)) :]
            held[request_layers.RECENT] += sum(map(len, closed)) + sum(len(_encode(message)) for message in rest)
        held[request_layers.TASK] += max(0, size - before - held[request_layers.RECENT])
        return {name: part // PER_TOKEN for name, part in held.items()}


def _blocks_of(parts: Sequence[tuple[str, str]]) -> list[Block]:
    return [_text(text) for _, text in parts]


def _encode(message: Message) -> bytes:
    try:
        return msgspec.json.encode(message)
    except UnicodeEncodeError:
        # half a surrogate pair: JSON can name it, and the endpoint may refuse it
        return json.dumps(message).encode()


def _short(block: Block, call_id: str) -> Block:
    """The short form of a call or of its result; anything else stays."""
    if block.get("type") == "tool_use":
        return {**block, "input": cleared_input(block["input"])}
    if block.get("type") == "tool_result":
        return {**block, "content": cleared_result(block["content"], call_id)}
    return block


def _add(messages: list[Message], role: str, blocks: list[Block]) -> bool:
    """Append, merging turns of the same role: the API wants the roles to alternate. False when there is nothing to
    append.
    """
    blocks = [b for b in blocks if b.get("type") != "text" or str(b.get("text", "")).strip()]
    if not blocks:
        return False
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"].extend(blocks)
    else:
        messages.append({"role": role, "content": list(blocks)})
    return True


def _blocks(parts: Sequence[message_parts.Part], calls: bool) -> list[Block]:
    """The parts of a turn as it is sent back, its calls only when their results follow."""
    kept = (block_of(part) for part in shown(parts, calls))
    return [block for block in kept if block is not None]


def _clean(text: str) -> str:
    """Lone surrogates cannot be sent as UTF-8."""
    return text.encode("utf-8", "replace").decode("utf-8")


def _text(text: str) -> Block:
    return {"type": "text", "text": _clean(text)}


def _result(v: View, turn: ModelTurn, index: int) -> Block:
    call_id = turn.call_id(index)
    use = turn.calls[index]
    fact = v.calls.get(call_id)
    if fact is None and turn.seq < v.continued_seq:
        return {"type": "tool_result", "tool_use_id": use.ref, "content": NEVER_RAN, "is_error": True}
    if fact is None or fact.result is None:
        raise Unanswered(f"call {call_id} ({use.tool}) has no result yet")
    text, error = told(fact.result, len(turn.calls))
    if turn.seq < v.cleared_before:
        text = cleared_result(text, call_id)
    block: Block = {"type": "tool_result", "tool_use_id": use.ref, "content": _clean(text)}
    return {**block, "is_error": True} if error else block


def _breakpoints(messages: list[Message], hour: bool) -> None:
    """Mark the last block of the two newest user turns; with tools and system that makes four."""
    left = 2
    for message in reversed(messages):
        if message["role"] == "user" and left:
            message["content"][-1] = cached(message["content"][-1], hour)
            left -= 1


def cached(block: Block, hour: bool) -> Block:
    """The block with a cache breakpoint: what comes before it is kept for five minutes, or for an ``hour``."""
    return {**block, "cache_control": _HOUR if hour else _CACHE}


def system_blocks(text: str, *, hour: bool = False) -> list[Block]:
    """The system prompt as one cached block."""
    return [cached({"type": "text", "text": text}, hour)]


def cached_tools(tools: list[Block], *, hour: bool = False) -> list[Block]:
    """The tools with a cache breakpoint on the last."""
    return [*tools[:-1], cached(tools[-1], hour)] if tools else []


def size_bound(messages: list[Message]) -> int:
    """Tokens that these messages cannot exceed: one per byte, and the framing of each block."""
    return sum(
        _PER_BLOCK
        + len(json.dumps(m["content"], ensure_ascii=False).encode("utf-8", "replace"))
        + _PER_BLOCK * len(m["content"])
        for m in messages
    )


def estimate(v: View, conversation: Conversation) -> int | None:
    """An upper bound of the input tokens: the exact size of the newest reply's context plus one token per byte added
    since, and of a beginning that changed.

    None when no reply says how large the context is.
    """
    last = v.last_model
    if last is None or last.usage.total == 0:
        return None
    anew = sum(len(text.encode("utf-8", "replace")) for _, text in beginning(v)) if v.begins_seq > last.seq else 0
    return last.usage.total + conversation.added + anew
