"""Whether the next request needs room made for it, and how: the cheapest change that pays. Pure.

Sizes are measured by the newest reply; what was added since, and what a change will gain, is foreseen from bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from harness.brain.context.sizes import Sizes, TurnSize, gain, tokens

KEEP_TURNS = 3
"""The newest turns are left as they are."""
HANDOFF_TOKENS = 3000
"""What a hand-off has at most."""
SHRINK = 0.3
"""The part of a context that a compaction must give back."""
SUMMARY_TOKENS = 1000
"""What a summary is expected to have."""


@dataclass(frozen=True, slots=True)
class Clear:
    """Show the turns before record ``before`` in their short forms."""

    before: int
    tokens: int
    after: int
    trigger: str


@dataclass(frozen=True, slots=True)
class Reset:
    """Begin anew with a hand-off and what was said from record ``keep`` on."""

    keep: int
    tokens: int
    after: int
    trigger: str


@dataclass(frozen=True, slots=True)
class Compact:
    """Ask the model for a summary, then begin anew with it and what was said from record ``keep`` on; ``after``: the
    tokens that this leaves without the summary.
    """

    keep: int
    tokens: int
    after: int
    trigger: str


@dataclass(frozen=True, slots=True)
class Full:
    """Nothing more can be taken away, and it would not fit; ``tokens`` against ``most``."""

    tokens: int
    most: int


Change: TypeAlias = Clear | Reset | Compact | Full


@dataclass(frozen=True, slots=True)
class Measure:
    """What a request would have now, in tokens; ``turns``: what each turn in the context has, oldest first;
    ``boundary``: what ended a task since the context was last built anew, in words; ``overflows``: how often in a row
    it was found too long, and ``refused`` in words what was; ``outgrown``: the task that goes on had to be carried over
    once already, and nothing speaks against a summary of it; ``wanted``: a person wants one; ``carried``: tokens of
    what stands for earlier turns now.
    """

    now: int
    turns: Sequence[TurnSize]
    boundary: str = ""
    overflows: int = 0
    outgrown: bool = False
    wanted: bool = False
    carried: int = 0
    refused: str = ""


def due(m: Measure, sizes: Sizes) -> Change | None:
    """The change that must come before the next request, None when it can be sent as it is."""
    beyond = Full(m.now, sizes.most) if m.now > sizes.most else None
    if m.overflows:
        return forced(m, m.refused or "the model found the context too long") or beyond
    if beyond is not None:
        return forced(m, f"{_share(m.now, sizes.most)} of what can be sent") or beyond
    full = f"{_share(m.now, sizes.room)} of the working size"
    if m.wanted and (made := _carried(m, sizes, f"you wanted it, at {full}")) is not None:
        return made
    if m.boundary and m.now >= sizes.boundary_at:
        reset = _reset(m, sizes, f"{m.boundary}, at {full}")
        if reset is not None:
            return reset
    if m.now >= sizes.clear_at and len(m.turns) > KEEP_TURNS:
        gained = gain(m.turns[:-KEEP_TURNS])
        if gained >= sizes.clearing_pays:
            return Clear(m.turns[-KEEP_TURNS].seq, m.now, m.now - gained, full)
    if m.now < sizes.reset_at:
        return None
    made = _carried(m, sizes, f"one task outgrew its context, at {full}") if m.outgrown else None
    return made or _reset(m, sizes, full)


def _carried(m: Measure, sizes: Sizes, trigger: str) -> Compact | None:
    """A compaction, if it makes the context smaller by the part that its summary will be judged by."""
    kept = _kept(m, sizes)
    after = max(0, m.now - tokens(m.turns[:-kept]) - m.carried) + HANDOFF_TOKENS
    if not m.turns or after + SUMMARY_TOKENS > (1 - SHRINK) * m.now:
        return None
    return Compact(m.turns[-kept].seq, m.now, after, trigger)


def _reset(m: Measure, sizes: Sizes, trigger: str) -> Reset | None:
    """A reset that leaves the newest turns in place as far as they are small, if it pays."""
    kept = _kept(m, sizes)
    gained = tokens(m.turns[:-kept]) - HANDOFF_TOKENS
    return _anew(m, kept, trigger) if gained >= sizes.pays else None


def _kept(m: Measure, sizes: Sizes) -> int:
    """So many of the newest turns stay as they are: one, and more as far as they are small."""
    kept = 1
    while kept < min(KEEP_TURNS, len(m.turns)) and tokens(m.turns[-kept - 1 :]) <= sizes.kept:
        kept += 1
    return kept


def forced(m: Measure, trigger: str) -> Change | None:
    """Whatever can still be taken away: first all but the newest turn, then what that one holds."""
    if len(m.turns) > 1:
        return _anew(m, 1, trigger)
    gained = gain(m.turns)
    return Clear(m.turns[-1].seq + 1, m.now, max(0, m.now - gained), trigger) if gained else None


def without(m: Measure, keep: int, trigger: str) -> Reset:
    """Begin anew with a hand-off alone, and what was said from record ``keep`` on, which no reply is part of."""
    return Reset(keep, m.now, min(m.now, max(0, m.now - tokens(m.turns)) + HANDOFF_TOKENS), trigger)


def _anew(m: Measure, kept: int, trigger: str) -> Reset:
    after = min(m.now, max(0, m.now - tokens(m.turns[:-kept])) + HANDOFF_TOKENS)
    return Reset(m.turns[-kept].seq, m.now, after, trigger)


def _share(tokens_now: int, most: int) -> str:
    return f"{tokens_now:,} tokens are {100 * tokens_now // most} %"
