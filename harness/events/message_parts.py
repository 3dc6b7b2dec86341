"""What an agent said in one turn, in words of no vendor's: parts of text, calls, and what only its own kind can read.

A reply ends for one of the reasons in `STOPS`; whatever else a model API has to say of an end belongs to the agent that
speaks it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from typing import TypeAlias

import msgspec

DONE = "done"
"""It has said all it wants to say."""
CALLS = "calls"
"""It waits for the results of its calls."""
LENGTH = "length"
"""Cut at the limit of its output."""
PAUSED = "paused"
"""Its endpoint stopped in between: asked again, it goes on."""
WINDOW = "window"
"""Cut because the conversation fills the model's window."""
REFUSED = "refused"
"""The model declines to answer."""
STOPS = frozenset((DONE, CALLS, LENGTH, PAUSED, WINDOW, REFUSED))


class Text(msgspec.Struct, frozen=True, tag_field="part", tag="text"):
    """Prose."""

    text: str


class Call(msgspec.Struct, frozen=True, tag_field="part", tag="call"):
    """One call as the agent wrote it; ``ref`` is its own name for the call, by which it knows the result again."""

    ref: str
    tool: str
    input: dict[str, object]

    @property
    def input_hash(self) -> str:
        """Equal for calls that ask for the same, whatever they say about why."""
        asked = {k: v for k, v in self.input.items() if k != "why"}
        text = json.dumps([self.tool, asked], sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:32]


class Private(msgspec.Struct, frozen=True, omit_defaults=True, tag_field="part", tag="private"):
    """Something that only the kind of agent named in ``of`` can read, kept to be handed back to it; ``text`` is what a
    person can read of it.
    """

    of: str
    data: dict[str, object]
    text: str = ""


Part: TypeAlias = Text | Call | Private

_parts = msgspec.json.Decoder(list[Part])


def decode(blob: bytes) -> list[Part]:
    """The parts of a turn from a blob. Raises ValueError when it holds none."""
    try:
        return _parts.decode(blob)
    except msgspec.DecodeError as exc:
        raise ValueError(str(exc)) from exc


def text_of(parts: Iterable[Part]) -> str:
    """The prose of a turn, its parts on lines of their own."""
    return "\n".join(p.text for p in parts if not isinstance(p, Call) and p.text).strip()


def calls_of(parts: Iterable[Part]) -> tuple[Call, ...]:
    """The calls of a turn, in order."""
    return tuple(p for p in parts if isinstance(p, Call))


def spelled(text: str) -> int:
    """Bytes of a text as a request spells it, which its tokens cannot exceed."""
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace"))
