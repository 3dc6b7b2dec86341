"""What a conversation is made of: replies, words for the model, attempts that failed and calls, as the log has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from harness.domain.calls.call_id import name_call
from harness.eventlog.framing import LogError
from harness.events import message_parts
from harness.events import types as t

LoadBlob = Callable[[t.BlobRef], bytes]
_THOUGHTS = ("thinking", "redacted_thinking")
DROPPED = (message_parts.REFUSED, message_parts.WINDOW)
"""Cut replies: what they say is no part of the conversation."""


class DamagedMessage(Exception):
    """A model message whose content cannot be read back; the text names the record."""


class ModelTurn(msgspec.Struct, frozen=True, tag="model"):
    """A complete reply."""

    seq: int
    stop: str
    usage: t.Usage
    parts: tuple[message_parts.Part, ...]
    calls: tuple[message_parts.Call, ...]

    @property
    def empty(self) -> bool:
        """Whether it ended its turn without a word or a call, whatever it has thought."""
        return self.stop == message_parts.DONE and not self.calls and not message_parts.text_of(self.parts).strip()

    @property
    def only_thought(self) -> bool:
        """Whether nothing but thinking stands in it, which the API does not take back as a turn of its own."""
        rest = (part.data for part in self.parts if isinstance(part, message_parts.Private))
        return self.empty and all(data.get("type") in _THOUGHTS for data in rest)

    def call_id(self, index: int) -> str:
        return name_call(self.seq, index)


class UserTurn(msgspec.Struct, frozen=True, tag="user"):
    """Text for the model: typed by a human or written by the harness."""

    seq: int
    text: str
    origin: str


@dataclass(frozen=True, slots=True)
class FailedTry:
    """One failed attempt, where and when it was recorded."""

    seq: int
    ts: str
    body: t.ModelFailed


@dataclass(slots=True)
class CallFact:
    """One proposed call; ``result`` once it ended or was resolved for good."""

    seq: int
    of: int = -1
    """The reply that made it; -1 for one of the harness."""
    command: str = ""
    ended: t.ToolEnded | None = None
    resolved: t.ToolResolved | None = None
    result_seq: int = -1
    verdict: t.CheckVerdict | None = None

    @property
    def result(self) -> t.ToolEnded | t.ToolResolved | None:
        return self.ended or self.resolved


def parts_of(seq: int, body: t.ModelMessage, load: LoadBlob) -> list[message_parts.Part]:
    if body.parts is not None:
        return body.parts
    if body.parts_blob is None:
        return []
    try:
        return message_parts.decode(load(body.parts_blob))
    except (LogError, OSError, ValueError) as exc:
        raise DamagedMessage(
            f"the reply at seq {seq} cannot be read from its blob {body.parts_blob.sha[:12]}: {exc}"
        ) from exc
