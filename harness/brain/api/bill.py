"""What an endpoint says that a reply took, and how much of that is believed. Pure.

An endpoint may count as it likes, in any form: that costs no reply. What cannot be is not believed, and counts as what
was reserved for it: the most that it may have cost.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from msgspec import structs

from harness.events.types import Usage

_MOST_COUNTED = 1 << 40
_BESIDE = 1000
"""Tokens that an endpoint may count beside what it was sent: what tools add to the prompt."""
_AFTER = 64
"""Tokens that it may count beyond the longest reply that was asked for: what ends it."""
_COMPACTION = "compaction"
_INPUT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
_OUTPUT = "output_tokens"
_BY_AGE = ("ephemeral_5m_input_tokens", "ephemeral_1h_input_tokens")
_SHOWN = 40


@dataclass(frozen=True, slots=True)
class Bounds:
    """The most that a request can take, in tokens: ``sent`` read and ``allowed`` written, and how many of the former
    were ``reserved`` for it.
    """

    sent: int
    allowed: int
    reserved: int


@dataclass(frozen=True, slots=True)
class Believed:
    """``doubt``: what of the report cannot be, in words; empty when all of it can. ``compaction``: the part of
    ``usage`` that a compaction by the endpoint took.
    """

    usage: Usage
    compaction: Usage = field(default_factory=Usage)
    doubt: str = ""


class Bill:
    """Takes the figures of one reply as they come; the later ones are totals, in which what does not apply is left
    out. Where they are lower than what was told before, what was told before counts: it may be billed.
    """

    def __init__(self) -> None:
        self._told: dict[str, int] = {}
        self._iterations: object = None
        self._wrong: dict[str, str] = {}

    def take(self, usage: object) -> None:
        """One report, in whatever form."""
        if usage is None:
            return
        if not isinstance(usage, dict):
            self._wrong["usage"] = f"a usage of {_short(usage)}"
            return
        counts = self._counts(usage, (*_INPUT, _OUTPUT))
        if _OUTPUT in counts:
            self._told[_OUTPUT] = max(self._told.get(_OUTPUT, 0), counts.pop(_OUTPUT))
        given = {name: self._told[name] for name in _INPUT if name in self._told} | counts
        if sum(given.values()) >= sum(self._told.get(name, 0) for name in _INPUT):
            self._told |= given
        ages = usage.get("cache_creation")
        if isinstance(ages, dict):
            self._told |= self._counts(ages, _BY_AGE)
        if usage.get("iterations") is not None:
            self._iterations = usage["iterations"]

    def believed(self, bounds: Bounds) -> Believed:
        """What counts of it."""
        counted = _usage(self._told)
        compaction = self._compaction()
        usage = counted + compaction
        wrong = self._missing() | self._wrong
        if usage.given > bounds.sent + _BESIDE:
            wrong[_INPUT[0]] = f"{usage.given:,} tokens read of {bounds.sent:,} bytes that were sent"
        if usage.output > bounds.allowed + _AFTER:
            wrong[_OUTPUT] = f"{usage.output:,} tokens written where {bounds.allowed:,} were allowed"
        if not wrong:
            return Believed(usage, compaction)
        if wrong.keys() - {_OUTPUT}:
            usage = Usage(input=max(0, bounds.reserved), output=usage.output)
        if wrong.keys() - {*_INPUT, *_BY_AGE}:
            usage = structs.replace(usage, output=bounds.allowed)
        return Believed(usage, doubt="; ".join(wrong.values()))

    def _missing(self) -> dict[str, str]:
        return {name: f"no {name}" for name in (_INPUT[0], _OUTPUT) if name not in self._told}

    def _counts(self, told: Mapping[object, object], names: tuple[str, ...]) -> dict[str, int]:
        """Those of these figures that are counts; the others are remembered as what cannot be."""
        found: dict[str, int] = {}
        for name in names:
            value = told.get(name)
            if value is None:
                continue
            count = _count(value)
            if count is None:
                self._wrong[name] = f"{name} {_short(value)}"
            else:
                found[name] = count
        return found

    def _compaction(self) -> Usage:
        """What a compaction that the endpoint made by itself took: it is billed beside the figures of the message."""
        found = Usage()
        for one in self._iterations if isinstance(self._iterations, list) else ():
            if isinstance(one, dict) and one.get("type") == _COMPACTION:
                part = Bill()
                part.take({name: value for name, value in one.items() if name != "iterations"})
                self._wrong |= part._missing() | part._wrong
                found += _usage(part._told)
        return found


def _usage(told: Mapping[str, int]) -> Usage:
    """Tokens as the ledger counts them; cache writes without a breakdown count as 5-minute writes."""
    written = told.get(_INPUT[1], 0)
    hour = told.get(_BY_AGE[1], 0)
    five = max(told.get(_BY_AGE[0], 0), written - hour)
    return Usage(told.get(_INPUT[0], 0), told.get(_INPUT[2], 0), five, hour, told.get(_OUTPUT, 0))


def _count(value: object) -> int | None:
    """A count, which a proxy may write as ``10.0``; None when it is none."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if 0 <= value <= _MOST_COUNTED and value == int(value) else None


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
