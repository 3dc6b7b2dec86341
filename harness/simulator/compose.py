"""From a scenario's turn to the vendor's message, and from that to the events of its stream."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from harness.simulator import tokens
from harness.simulator.catalog import Tokens
from harness.simulator.script import Turn

_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
TOOL_OVERHEAD = 12
_START: dict[str, dict[str, object]] = {
    "text": {"text": ""},
    "thinking": {"thinking": "", "signature": ""},
    "tool_use": {"input": {}},
    "compaction": {"content": None},
}


def identifier(prefix: str, seed: str) -> str:
    """A vendor-like id that depends on the seed alone."""
    number = int.from_bytes(hashlib.sha256(f"{prefix}{seed}".encode()).digest(), "big")
    letters = []
    for _ in range(22):
        number, digit = divmod(number, len(_ALPHABET))
        letters.append(_ALPHABET[digit])
    return f"{prefix}_01{''.join(letters)}"


@dataclass(frozen=True, slots=True)
class Piece:
    """One event of the stream; ``output`` tokens are generated up to and including it."""

    data: dict[str, object]
    output: int

    def encode(self) -> bytes:
        return f"event: {self.data['type']}\ndata: {json.dumps(self.data, separators=(',', ':'))}\n\n".encode()


@dataclass(frozen=True, slots=True)
class Message:
    """A whole reply. ``inputs[i]`` is block i's tool input as JSON text, cut short when ``max_tokens`` ended it."""

    id: str
    model: str
    content: list[dict[str, Any]]
    inputs: list[str]
    stop_reason: str
    prompt: Tokens
    output: int
    compacted: Tokens | None = None
    """What the compaction that its first block comes from took, beside the figures of the message."""
    reported: tuple[tuple[str, object], ...] = ()
    """Figures that it tells in place of its own."""

    def usage(self, output: int) -> dict[str, object]:
        counted = _usage(self.prompt, output)
        told: dict[str, object] = {**counted, "service_tier": "standard"}
        if self.compacted is not None:
            made = {"type": "compaction", **_usage(self.compacted, self.compacted.output)}
            told["iterations"] = [made, {"type": "message", **counted}]
        return told | dict(self.reported)

    def body(self) -> dict[str, object]:
        """The answer to a request without streaming."""
        head = self._head(self.output)
        return {**head, "content": self.content, "stop_reason": self.stop_reason}

    def _head(self, output: int) -> dict[str, object]:
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": [],
            "stop_reason": None,
            "stop_sequence": None,
            "usage": self.usage(output),
        }

    def pieces(self) -> Iterator[Piece]:
        """All events in order, from ``message_start`` to ``message_stop``."""
        done = 1
        yield Piece({"type": "message_start", "message": self._head(done)}, done)
        for i, block in enumerate(self.content):
            kind = block["type"]
            start = _START[kind]
            yield Piece({"type": "content_block_start", "index": i, "content_block": {**block, **start}}, done)
            if i == 0:
                yield Piece({"type": "ping"}, done)
            for delta, cost in self._deltas(i, block):
                done += cost
                yield Piece({"type": "content_block_delta", "index": i, "delta": delta}, min(done, self.output))
            yield Piece({"type": "content_block_stop", "index": i}, min(done, self.output))
        usage = self.usage(self.output)
        usage.pop("cache_creation"), usage.pop("service_tier")
        yield Piece(
            {
                "type": "message_delta",
                "delta": {"stop_reason": self.stop_reason, "stop_sequence": None},
                "usage": usage,
            },
            self.output,
        )
        yield Piece({"type": "message_stop"}, self.output)

    def _deltas(self, i: int, block: dict[str, Any]) -> Iterator[tuple[dict[str, str], int]]:
        if block["type"] == "tool_use":
            yield {"type": "input_json_delta", "partial_json": ""}, TOOL_OVERHEAD
            for part in _split(self.inputs[i], 48):
                yield {"type": "input_json_delta", "partial_json": part}, tokens.of_text(part)
            return
        if block["type"] == "compaction":
            yield {"type": "compaction_delta", "content": block["content"]}, 0
            return
        name = "text" if block["type"] == "text" else "thinking"
        for part in _split(block[name], 24):
            yield {"type": f"{name}_delta", name: part}, tokens.of_text(part)
        if name == "thinking":
            yield {"type": "signature_delta", "signature": block["signature"]}, 0


def _usage(p: Tokens, output: int) -> dict[str, object]:
    return {
        "input_tokens": p.input,
        "cache_creation_input_tokens": p.write_5m + p.write_1h,
        "cache_read_input_tokens": p.cache_read,
        "cache_creation": {"ephemeral_5m_input_tokens": p.write_5m, "ephemeral_1h_input_tokens": p.write_1h},
        "output_tokens": output,
    }


def _split(text: str, size: int) -> Iterator[str]:
    """Pieces of about ``size`` characters, long texts in at most 200 pieces, so that a big file does not take
    minutes.
    """
    step = max(size, -(-len(text) // 200))
    for at in range(0, len(text), step):
        yield text[at : at + step]


def message(turn: Turn, *, model: str, seed: str, prompt: Tokens, max_tokens: int) -> Message:
    """The turn as a message, ended by ``max_tokens`` where it is longer: the last block is then incomplete, as on the
    real service.
    """
    content: list[dict[str, object]] = []
    inputs: list[str] = []
    left = max_tokens
    cut = False

    def add(block: dict[str, Any], raw: str, cost: int) -> None:
        nonlocal left
        content.append(block)
        inputs.append(raw)
        left -= cost

    for name, text in (("thinking", turn.thinking), ("text", turn.text)):
        if text and not cut:
            kept = tokens.cut(text, left)
            cut = kept != text
            signature = {"signature": identifier("sig", seed)} if name == "thinking" else {}
            if kept:
                add({"type": name, name: kept, **signature}, "", tokens.of_text(kept))
    for i, use in enumerate(turn.calls):
        if cut or left <= TOOL_OVERHEAD:
            cut = True
            break
        raw = json.dumps(use.input, separators=(",", ":"), ensure_ascii=False)
        kept = tokens.cut(raw, left - TOOL_OVERHEAD)
        cut = kept != raw
        block = {
            "type": "tool_use",
            "id": identifier("toolu", f"{seed}/{i}"),
            "name": use.tool,
            "input": {} if cut else use.input,
        }
        add(block, kept, TOOL_OVERHEAD + tokens.of_text(kept))
    if not content:
        add({"type": "text", "text": "…"}, "", 1)
    ended = turn.stop_reason or ("tool_use" if turn.calls else "end_turn")
    stop = "max_tokens" if cut else ended
    return Message(identifier("msg", seed), model, content, inputs, stop, prompt, max(1, max_tokens - left))


def begun_with(made: dict[str, object], message: Message, took: Tokens) -> Message:
    """The message behind the block of a compaction, which took so many tokens of its own."""
    return replace(message, content=[made, *message.content], inputs=["", *message.inputs], compacted=took)


def without_a_word(message: Message, thought: str, seed: str) -> Message:
    """The message with nothing in it but what it has thought, if anything, as the end of a turn."""
    block = {"type": "thinking", "thinking": thought, "signature": identifier("sig", seed)}
    content = [block] if thought else []
    return replace(message, content=content, inputs=[""] * len(content), stop_reason="end_turn")
