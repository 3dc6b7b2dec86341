"""The kinds of request that a person let run in one session: what a later one is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from harness.domain.calls.card_facts import notes_of
from harness.domain.decision import Decision

MOST = 32
"""Different shapes that are remembered of one session; the one approved longest ago goes first."""


class Shape(msgspec.Struct, frozen=True):
    """A request's facts as digests, and how often it was approved with exactly these."""

    of: str
    facts: dict[str, str]
    times: int


@dataclass(frozen=True, slots=True)
class Approved:
    """The shapes that were approved, the newest last."""

    shapes: tuple[Shape, ...] = ()

    def after(self, detail: Mapping[str, object], decision: str) -> Approved:
        """What is known once a request with this detail was decided; only a plain yes counts."""
        notes = notes_of(detail) if decision == Decision.ALLOW else None
        if notes is None or not notes.of:
            return self
        times = 1
        others = []
        for shape in self.shapes:
            if (shape.of, shape.facts) == (notes.of, notes.facts):
                times += shape.times
            else:
                others.append(shape)
        return Approved((*others[-(MOST - 1) :], Shape(notes.of, notes.facts, times)))
