"""What one line about a record is, the table that the rooms of this folder fill, and the short forms they share."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import msgspec

from harness.events import types as t
from harness.events.body import UNSETTLED
from harness.events.words import usd

Tone = Literal["info", "good", "warn", "bad", "dim"]
QUOTE = 400
"""Most characters of a text that one line quotes."""


class Line(msgspec.Struct, frozen=True):
    """``kind`` is a short word for the column, ``summary`` one line of raw text, ``tone`` how it should stand out."""

    kind: str
    summary: str
    tone: Tone


B = TypeVar("B", bound=t.Body)


class Describers:
    """By the class of a body, the function that says it in one line; each room has one and `describe` joins them."""

    def __init__(self) -> None:
        self.table: dict[type[t.Body], Callable[[Any], Line]] = {}

    def on(self, cls: type[B]) -> Callable[[Callable[[B], Line]], Callable[[B], Line]]:
        """Register the decorated function for bodies of this class."""

        def register(fn: Callable[[B], Line]) -> Callable[[B], Line]:
            self.table[cls] = fn
            return fn

        return register


def paid(nano: int, source: str) -> str:
    """What a reply cost, or what it can have cost at most while nobody had settled it."""
    return f"at most {usd(nano)}" if source == UNSETTLED else usd(nano)


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
