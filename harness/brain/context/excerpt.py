"""The short form of a large output: its beginning and its end, and how the model reads the rest. Pure."""

from __future__ import annotations

LARGE = 3072
"""Bytes shown of an output that has a blob of its own."""


def excerpt(preview: str, size: int, call_id: str, most: int = LARGE) -> str:
    """About ``most`` bytes of an output of ``size`` bytes, from its ``preview``: a third from its beginning and the
    rest from its end, cut at line ends if there are any near.
    """
    data = preview.encode("utf-8", "replace")
    if len(data) <= most:
        return f"{preview}\n{_note(size, call_id)}"
    head = data[: most // 3]
    head = head[: head.rfind(b"\n") + 1] or head
    tail = data[most // 3 - most :]
    line = tail.find(b"\n")
    tail = tail[line + 1 :] if 0 <= line < most // 3 else tail
    begin = head.decode("utf-8", "ignore").rstrip("\n")
    end = tail.decode("utf-8", "ignore")
    return f"{begin}\n[…]\n{end}\n{_note(size, call_id)}"


def _note(size: int, call_id: str) -> str:
    return (
        f"[{size} bytes in all, only the beginning and the end are shown: read_output with call {call_id} shows the"
        " rest, piece by piece or by grep]"
    )
