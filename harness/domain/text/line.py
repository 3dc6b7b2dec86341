"""How values read in one line: quoted, shortened, as sizes and durations."""

from __future__ import annotations

import json

QUOTE = 400
"""Most characters of a text that one line quotes."""


def first(text: str) -> str:
    """The first line with a word in it, else the first that is not empty, cut to a bounded length."""
    lines = [line for line in text.split("\n") if line.strip()]
    if not lines:
        return ""
    line = next((one for one in lines if any(map(str.isalnum, one))), lines[0])
    more = len(text) > len(line.rstrip()) + 1
    return line.strip()[:QUOTE] + (" …" if more or len(line) > QUOTE else "")


def compact(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "), default=str)
    return text if len(text) <= QUOTE else text[:QUOTE] + " …"


def duration(ms: int) -> str:
    return f"{ms} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


def size(count: int) -> str:
    if count < 1024:
        return f"{count} B"
    return f"{count / 1024:.1f} KiB" if count < 1024 * 1024 else f"{count / 1024 / 1024:.1f} MiB"
