"""Records that earlier versions wrote, in today's words. A log is never rewritten, so this is read for ever."""

from __future__ import annotations

import msgspec

from harness.events import message_parts
from harness.events.messages_api import STOPS, parts_of

_parts = msgspec.json.Decoder(list[message_parts.Part])
_blocks = msgspec.json.Decoder(list[dict[str, object]])


def in_todays_words(kind: str, data: dict[str, object]) -> dict[str, object] | None:
    """The data of a record that no reader of today takes as it is, or None when no earlier version wrote it so."""
    match kind:
        case "model.message" if isinstance(data.get("stop_reason"), str):
            return _reply(data)
        case "tool.proposed" if "ref" not in data:
            return {**{k: v for k, v in data.items() if k != "tool_use_id"}, "ref": data.get("tool_use_id", "")}
        case _:
            return None


def parts_in(blob: bytes) -> list[message_parts.Part]:
    """The parts of a reply from its blob. Raises ValueError when it holds none."""
    try:
        return _parts.decode(blob)
    except msgspec.DecodeError:
        pass  # it may be older than parts
    try:
        return parts_of(_blocks.decode(blob))
    except msgspec.DecodeError as exc:
        raise ValueError(str(exc)) from exc


def _reply(data: dict[str, object]) -> dict[str, object]:
    """A reply as blocks of the Messages API, with its stop reason."""
    now = {k: v for k, v in data.items() if k not in ("stop_reason", "content", "content_blob")}
    now["stop"] = STOPS.get(str(data["stop_reason"]), data["stop_reason"])
    content = data.get("content")
    if isinstance(content, list):
        now["parts"] = msgspec.to_builtins(parts_of(b for b in content if isinstance(b, dict)))
    if data.get("content_blob") is not None:
        now["parts_blob"] = data["content_blob"]
    return now
