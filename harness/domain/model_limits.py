"""How much a model takes in and gives back, as its endpoint says. Standard library only."""

from __future__ import annotations

from typing import NamedTuple

_LEAST_WINDOW = 10_000
_LEAST_OUTPUT = 1024
_MOST = 1 << 30
"""Numbers beyond these are no limits of a model that an agent can work with: nobody told."""


class ModelLimits(NamedTuple):
    """Tokens, and the ``bytes`` of the shortest request that was refused for its length; 0 is what nobody told."""

    window: int = 0
    output: int = 0
    bytes: int = 0

    @classmethod
    def of(cls, window: object, output: object, refused: object = 0) -> ModelLimits:
        """From whatever an endpoint answered."""
        return cls(_within(window, _LEAST_WINDOW), _within(output, _LEAST_OUTPUT), _within(refused, 1))

    def beside(self, other: ModelLimits) -> ModelLimits:
        """These, with what ``other`` knows beside them; of two refused sizes the smaller."""
        refused = min((size for size in (self.bytes, other.bytes) if size), default=0)
        return ModelLimits(self.window or other.window, self.output or other.output, refused)


UNTOLD = ModelLimits()


def _within(value: object, least: int) -> int:
    fits = isinstance(value, int) and not isinstance(value, bool) and least <= value <= _MOST
    return value if fits and isinstance(value, int) else 0
