"""The short form of a large output: its beginning and its end, and how the model reads the rest. Pure."""

from __future__ import annotations

_HEAD = 1024
_TAIL = 2048


def excerpt(preview: str, size: int, call_id: str) -> str:
    """About 3 KiB at most of an output of ``size`` bytes, from its ``preview``, cut at line ends if there are any."""
    data = preview.encode("utf-8", "replace")
    if len(data) <= _HEAD + _TAIL:
        return f"{preview}\n{_note(size, call_id)}"
    head = data[:_HEAD]
    head = head[: head.rfind(b"\n") + 1] or head
    tail = data[-_TAIL:]
    line = tail.find(b"\n")
    tail = tail[line + 1 :] if 0 <= line < _TAIL // 2 else tail
    begin = head.decode("utf-8", "ignore").rstrip("\n")
    end = tail.decode("utf-8", "ignore")
    return f"{begin}\n[…]\n{end}\n{_note(size, call_id)}"


def _note(size: int, call_id: str) -> str:
    return (
        f"[{size} bytes in all, only the beginning and the end are shown: read_output with call {call_id} shows the"
        " rest, piece by piece or by grep]"
    )
