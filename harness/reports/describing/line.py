"""What one line about a record is, the table that the rooms of this folder fill, and the short forms they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, TypeVar

import msgspec

from harness.domain.text.formatting import usd
from harness.events import types as t
from harness.events.body import UNSETTLED

Tone = Literal["info", "good", "warn", "bad", "dim"]


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
