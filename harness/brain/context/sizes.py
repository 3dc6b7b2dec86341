"""How much a context may hold, and how much each turn of it does. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.brain.context.clearing import cleared_input, cleared_result
from harness.events import message_parts
from harness.events.messages_api import OF

WORKING = 80_000
"""Tokens that a context is kept within: what a turn costs follows what is read again with each."""
PER_TOKEN = 4
"""Bytes of a token, to foresee what a change will gain; what decides is measured."""
_CLEAR = 0.6
_RESET = 0.7
_BOUNDARY = 0.4
_PAYS = 0.2
_CLEARING_PAYS = 0.5
_MOST = 0.92
_KEPT = 0.15


@dataclass(frozen=True, slots=True)
class Sizes:
    """Tokens: the size to work in, the model's window, the most that a reply may have, and what instructions and tools
    take of every request. ``bytes``: a request of so many was refused for its length; 0 = none was.
    """

    working: int = WORKING
    window: int = 200_000
    output: int = 8192
    fixed: int = 0
    bytes: int = 0

    @property
    def most(self) -> int:
        """A request of more is not sent."""
        return max(1, int(_MOST * (self.window - self.output)))

    def reply(self, wanted: int, now: int) -> int:
        """The longest reply to a request of ``now`` tokens: more than usual only as far as both fit the window."""
        return min(wanted, max(self.output, self.window - now))

    @property
    def room(self) -> int:
        """What counts as full: the working size, or what window and endpoint allow."""
        most = min(self.working, self.most)
        return min(most, max(1, self.bytes // PER_TOKEN)) if self.bytes else most

    @property
    def clear_at(self) -> int:
        return int(_CLEAR * self.room)

    @property
    def reset_at(self) -> int:
        return int(_RESET * self.room)

    @property
    def boundary_at(self) -> int:
        """A task that ends below this leaves the context as it is: a reset would cost more than it saves."""
        return int(_BOUNDARY * self.room)

    @property
    def pays(self) -> int:
        """What a new beginning must gain: it breaks the prompt cache from the goal on."""
        return int(_PAYS * self.room)

    @property
    def clearing_pays(self) -> int:
        """What a clearing must gain: it breaks the cache too, and what it leaves is written again."""
        return int(_CLEARING_PAYS * self.room)

    @property
    def kept(self) -> int:
        """What the newest turns may have together that a reset leaves in place."""
        return int(_KEPT * self.room)


@dataclass(slots=True)
class TurnSize:
    """Bytes of one turn, its results included; ``clearable`` of them go when it is cleared."""

    seq: int
    bytes: int = 0
    clearable: int = 0

    def add_parts(self, parts: Iterable[message_parts.Part]) -> None:
        for part in parts:
            if isinstance(part, message_parts.Call):
                size = _json(part.input)
                self.clearable += max(0, size - _json(cleared_input(part.input)))
                self.bytes += size + len(part.tool) + len(part.ref)
            elif isinstance(part, message_parts.Private):
                self.bytes += _json(part.data)
            else:
                self.bytes += len(part.text.encode("utf-8", "replace"))

    def add_result(self, text: str, call_id: str) -> None:
        size = len(text.encode("utf-8", "replace"))
        self.bytes += size
        self.clearable += max(0, size - len(cleared_result(text, call_id).encode("utf-8", "replace")))

    def clear(self) -> None:
        self.bytes -= self.clearable
        self.clearable = 0


def shown(parts: Iterable[message_parts.Part], calls: bool) -> list[message_parts.Part]:
    """The parts of a turn that a request can show: its calls only when their results follow (``calls``), no blank
    text, nothing that another kind of agent kept for itself.
    """
    return [part for part in parts if _shows(part, calls)]


def _shows(part: message_parts.Part, calls: bool) -> bool:
    match part:
        case message_parts.Text():
            return bool(part.text.strip())
        case message_parts.Call():
            return calls
        case message_parts.Private():
            return part.of == OF


def tokens(sizes: Sequence[TurnSize]) -> int:
    """About how many tokens these turns have."""
    return sum(size.bytes for size in sizes) // PER_TOKEN


def gain(sizes: Sequence[TurnSize]) -> int:
    """About how many tokens clearing these turns gives back."""
    return sum(size.clearable for size in sizes) // PER_TOKEN


def _json(value: object) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
