"""Long listings of a card: as much of them as a person reads at a glance, and the whole below the rule. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.domain.text.formatting import counted
from widgets.card.card_line import CardLine, wrap

NARROW = 80
"""Columns at which the rows of a listing are counted."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing of a listing. ``brief`` stands for it where its details are cut short; it is at least as telling as
    ``head``.
    """

    head: CardLine
    details: tuple[CardLine, ...] = ()
    brief: CardLine | None = None

    @property
    def lines(self) -> list[CardLine]:
        return [self.head, *self.details]


@dataclass(frozen=True, slots=True)
class Listing:
    """``above`` is read first; ``rest`` are those entries whole that are not whole there."""

    above: list[CardLine]
    rest: list[CardLine]


def rows_of(lines: Sequence[CardLine], width: int = NARROW) -> int:
    """Rows that lines take."""
    return sum(len(wrap(line, width)) for line in lines)


def listing(entries: Sequence[Entry], room: int) -> Listing:
    """All of it where it fits into so many rows; else every entry by name as far as that fits, the first ones with
    their details.
    """
    if rows_of([line for one in entries for line in one.lines]) <= room:
        return Listing([line for one in entries for line in one.lines], [])
    left = room - 1  # for the line that says how much there is besides
    shown: list[list[CardLine]] = []
    for one in entries:
        line = one.brief or one.head
        left -= rows_of([line])
        if left < 0 and shown:
            break
        shown.append([line])
    for own, one in zip(shown, entries, strict=False):
        for detail in one.details:
            left -= rows_of([detail])
            if left < 0:
                break
            own.append(detail)
        if len(own) - 1 == len(one.details):
            own[0] = one.head
    cut = [one for at, one in enumerate(entries) if at >= len(shown) or len(shown[at]) - 1 < len(one.details)]
    above = [line for own in shown for line in own]
    missing = sum(len(one.lines) for one in entries) - len(above)
    mark = CardLine(f"  … {counted(missing, 'more line')} of it, below the line", "warn")
    return Listing([*above, mark], [line for one in cut for line in one.lines])
