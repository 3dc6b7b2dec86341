"""The log as the model sees it: messages with cache breakpoints, old tool results cleared as a derived view, and the
size to reserve for.

The log is never changed. Pairs of tool_use and tool_result stay together; the goal stands first, verbatim, and is never
cleared.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from harness.brain import prompt
from harness.brain.context.excerpt import excerpt
from harness.brain.view import ModelTurn, UserTurn, View
from harness.events import said
from harness.events import types as t
from harness.events.blocks import Block, block_of

Message = dict[str, Any]

_CACHE = {"type": "ephemeral"}
_DROPPED = (said.REFUSED, said.WINDOW)  # cut replies: their content is no part of the conversation
_CLEARED = "[the output of this older call was cleared to save room; run it again if you need it]"
_OPEN = 4  # messages that may still get blocks or cache breakpoints: the two newest user turns are among them
_NEVER_RAN = "The session ended before this call; nothing ran."
_PER_BLOCK = 32  # tokens of framing per message or block that the wire does not show


class Unanswered(Exception):
    """A call of the newest reply has no result: the conversation cannot be sent."""


@dataclass(frozen=True, slots=True)
class Conversation:
    """``encoded``: the messages as sent, a JSON array; ``delivers``: the calls whose results the model sees for the
    first time.

    ``added`` bounds the tokens of what was said after the newest reply.
    """

    encoded: bytes
    added: int
    delivers: tuple[str, ...]

    @property
    def messages(self) -> list[Message]:
        """The messages, decoded."""
        found: list[Message] = json.loads(self.encoded)
        return found


class Talk:
    """A conversation taken in turn by turn and kept as it is sent, so that a request costs what is new in it and
    nothing is held twice.
    """

    def __init__(self) -> None:
        self._closed: list[bytes] = []
        self._open: list[Message] = []
        self._results: dict[int, int] = {}
        """By turn whose results are not cleared: the number of the message that holds them."""
        self._taken = self._cleared = -1
        self._begun = False

    def take(self, v: View) -> None:
        """Take in all turns before the newest reply; these are final but for clearing. Raises Unanswered."""
        if not self._begun:
            self._begun = True
            _add(self._open, "user", [_text(v.state.intent.goal if v.state.intent is not None else "")])
        last = v.last_model
        for turn in v.turns:
            if last is not None and turn.seq < last.seq and turn.seq > self._taken:
                self._say(v, turn, self._open, calls=isinstance(turn, ModelTurn) and turn.stop == said.CALLS)
                self._taken = turn.seq
        if v.cleared_before > self._cleared:
            self._clear(v.cleared_before)
        while len(self._open) > _OPEN:
            self._closed.append(_encode(self._open.pop(0)))

    def build(self, v: View) -> Conversation:
        """The whole conversation. Raises Unanswered when a call of any kept reply has no result."""
        self.take(v)
        messages = [{**m, "content": list(m["content"])} for m in self._open]
        delivers: list[str] = []
        for turn in v.turns:
            if turn.seq <= self._taken:
                continue
            calls = isinstance(turn, ModelTurn) and turn.stop == said.CALLS and not v.finished
            self._say(v, turn, messages, calls=calls)
            if isinstance(turn, ModelTurn) and calls:
                delivers = [turn.call_id(i) for i in range(len(turn.calls))]
        if v.finish_seq >= 0 and not v.finished:
            _add(messages, "user", [_text(prompt.FINISH)])
        added = 0
        for message in reversed(messages):
            if message["role"] == "assistant":
                break
            added += size_bound([message])
        _breakpoints(messages)
        return Conversation(b"[" + b",".join([*self._closed, *map(_encode, messages)]) + b"]", added, tuple(delivers))

    def _say(self, v: View, turn: ModelTurn | UserTurn, messages: list[Message], *, calls: bool) -> None:
        """Add one turn, with its results when it has ``calls``."""
        if isinstance(turn, UserTurn):
            _add(messages, "user", [_text(turn.text)])
            return
        if turn.stop in _DROPPED:
            return
        results = [_result(v, turn, i) for i in range(len(turn.calls))] if calls else []
        _add(messages, "assistant", _blocks(turn.parts, calls))
        if results:
            _add(messages, "user", results)
            if messages is self._open:
                self._results[turn.seq] = len(self._closed) + len(messages) - 1

    def _clear(self, before: int) -> None:
        """The results of the turns before ``before`` count as cleared from now on."""
        self._cleared = before
        for seq in [seq for seq in self._results if seq < before]:
            number = self._results.pop(seq)
            if number >= len(self._closed):
                _cleared(self._open[number - len(self._closed)])
            else:
                message = json.loads(self._closed[number])
                _cleared(message)
                self._closed[number] = _encode(message)


def _encode(message: Message) -> bytes:
    try:
        return msgspec.json.encode(message)
    except UnicodeEncodeError:
        # half a surrogate pair from an older log: JSON can name it, and the endpoint may refuse it
        return json.dumps(message).encode()


def _cleared(message: Message) -> None:
    """Clear the tool results of one message, in place."""
    for index, block in enumerate(message["content"]):
        if block.get("type") == "tool_result" and len(block["content"]) > 2 * len(_CLEARED):
            message["content"][index] = {**block, "content": _CLEARED}


def _add(messages: list[Message], role: str, blocks: list[Block]) -> None:
    """Append, merging turns of the same role: the API wants the roles to alternate."""
    blocks = [b for b in blocks if b.get("type") != "text" or str(b.get("text", "")).strip()]
    if not blocks:
        return
    if messages and messages[-1]["role"] == role:
        messages[-1]["content"].extend(blocks)
    else:
        messages.append({"role": role, "content": list(blocks)})


def _blocks(parts: Sequence[said.Part], calls: bool) -> list[Block]:
    """The parts of a turn as it is sent back, its calls only when their results follow."""
    kept = (block_of(part) for part in parts if calls or not isinstance(part, said.Call))
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
        return {"type": "tool_result", "tool_use_id": use.ref, "content": _NEVER_RAN, "is_error": True}
    if fact is None or fact.result is None:
        raise Unanswered(f"call {call_id} ({use.tool}) has no result yet")
    text, error = _ended(fact.result) if isinstance(fact.result, t.ToolEnded) else _resolved(fact.result)
    if turn.seq < v.cleared_before and len(text) > 2 * len(_CLEARED):
        text = _CLEARED
    block: Block = {"type": "tool_result", "tool_use_id": use.ref, "content": _clean(text)}
    return {**block, "is_error": True} if error else block


def _ended(r: t.ToolEnded) -> tuple[str, bool]:
    notes = []
    if r.exit_code:
        notes.append(f"exit code {r.exit_code}")
    if r.status == "timeout":
        notes.append(f"stopped at its time limit after {r.ms / 1000:.0f} s")
    elif r.status in ("denied", "refused", "cancelled"):
        notes.append(
            f"the call was {r.status}; nothing ran"
            if r.status != "cancelled"
            else "the call was cancelled while it ran"
        )
    if r.truncated:
        notes.append("the output passed its limit and the rest was dropped")
    body = r.preview if r.preview.strip() else ""
    if r.output is not None:
        body = excerpt(r.preview, r.output.bytes, r.call_id)
    if not body and not notes:
        body = "(no output)"
    return "\n".join(part for part in (body, *(f"[{n}]" for n in notes)) if part), r.status != "ok"


_RESOLVED = {
    "confirmed_done": (
        "The call was interrupted, but its effect was confirmed: it is done. Its output is lost.",
        False,
    ),
    "failed": ("The call was interrupted and counts as failed.", True),
}


def _resolved(r: t.ToolResolved) -> tuple[str, bool]:
    text, error = _RESOLVED.get(r.resolution, ("Interrupted, outcome unknown: inspect before you repeat it.", True))
    return (f"{text}\n{r.evidence}" if r.evidence else text), error


def _breakpoints(messages: list[Message]) -> None:
    """Mark the last block of the two newest user turns; with tools and system that makes four."""
    left = 2
    for message in reversed(messages):
        if message["role"] == "user" and left:
            message["content"][-1] = {**message["content"][-1], "cache_control": _CACHE}
            left -= 1


def system_blocks() -> list[Block]:
    """The system prompt as one cached block."""
    return [{"type": "text", "text": prompt.SYSTEM, "cache_control": _CACHE}]


def cached_tools(tools: list[Block]) -> list[Block]:
    """The tools with a cache breakpoint on the last."""
    return [*tools[:-1], {**tools[-1], "cache_control": _CACHE}] if tools else []


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
    since.

    None when no reply says how large the context is.
    """
    last = v.last_model
    if last is None or last.usage.total == 0:
        return None
    return last.usage.total + conversation.added
