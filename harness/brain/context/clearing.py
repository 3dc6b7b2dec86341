"""The short forms of what an old turn holds: a result that can be read again, an input whose effect stands in a file.
Pure; the log keeps all of it.
"""

from __future__ import annotations

import hashlib
import json

_WHOLE = 400
"""Bytes of a text, as a request spells it, up to which its short form would gain nothing."""
_BEGIN = 150


def cleared_result(text: str, call_id: str) -> str:
    """The short form of a result; one that is short already stays."""
    size = len(text.encode("utf-8", "replace"))
    if size <= _WHOLE:
        return text
    return f"[cleared: {size} bytes of output; read_output with call {call_id} shows it]"


def cleared_input(given: dict[str, object]) -> dict[str, object]:
    """The short form of an input: every long text becomes its size, its hash and, where it is a command, how it
    begins. A short input stays.
    """
    return {name: _short(name, value) for name, value in given.items()}


def _short(name: str, value: object) -> object:
    if isinstance(value, list):
        text = "\n".join(str(part) for part in value)
        return value if _size(text) <= _WHOLE else [*map(_begin, map(str, value[:2])), _mark(text)]
    if not isinstance(value, str) or _size(value) <= _WHOLE:
        return value
    return f"{_begin(value)} {_mark(value)}" if name in ("script", "command") else _mark(value)


def _begin(text: str) -> str:
    begin = text.encode("utf-8", "replace")[:_BEGIN].decode("utf-8", "ignore")
    while (size := _size(begin)) > _BEGIN:
        begin = begin[: len(begin) * _BEGIN // size]
    return begin


def _mark(text: str) -> str:
    data = text.encode("utf-8", "replace")
    lines = text.count("\n") + (not text.endswith("\n"))
    return f"[cleared: {lines} lines, {len(data)} bytes, sha256 {hashlib.sha256(data).hexdigest()[:12]}]"


def _size(text: str) -> int:
    """Bytes of it in JSON, which spells one control character with six."""
    return len(json.dumps(text, ensure_ascii=False).encode("utf-8", "replace")) - 2
