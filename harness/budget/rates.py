"""What a model costs, by kind of token and size of the request."""

from __future__ import annotations

from dataclasses import dataclass

DEAREST = "dearest known"
"""The source of a price that no list has."""


@dataclass(frozen=True, slots=True)
class Rates:
    """Pico-USD per token, by kind."""

    input: int
    cache_read: int
    cache_write_5m: int
    cache_write_1h: int
    output: int

    def most(self, other: Rates) -> Rates:
        """The dearer of both, part by part."""
        return Rates(
            max(self.input, other.input),
            max(self.cache_read, other.cache_read),
            max(self.cache_write_5m, other.cache_write_5m),
            max(self.cache_write_1h, other.cache_write_1h),
            max(self.output, other.output),
        )


@dataclass(frozen=True, slots=True)
class Price:
    """Rates of one model.

    ``tiers`` are (more than this many input tokens, rates for every token), ascending, the first from 0.
    """

    model: str
    source: str
    known: bool
    tiers: tuple[tuple[int, Rates], ...]

    def rates(self, input_tokens: int) -> Rates:
        """The rates of a prompt with that many input tokens, cached ones included."""
        found = self.tiers[0][1]
        for start, rates in self.tiers[1:]:
            if input_tokens > start:
                found = rates
        return found
