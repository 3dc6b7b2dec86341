"""The caps there are, as logs, ledger and requests spell them: ``<whose>.<unit>``. Pure, standard library only."""

from __future__ import annotations

from enum import StrEnum


class Cap(StrEnum):
    """A cap on money (nano-USD), tokens, wall time (seconds) or the number of tool calls, of a session or above it."""

    SESSION_USD = "session.usd"
    SESSION_TOKENS = "session.tokens"
    SESSION_WALL = "session.wall"
    SESSION_CALLS = "session.calls"
    DAY_USD = "day.usd"
    DAY_TOKENS = "day.tokens"
    FLEET_USD = "fleet.usd"
    FLEET_TOKENS = "fleet.tokens"

    @classmethod
    def of(cls, spelled: object) -> Cap | None:
        """The cap that a record or a request names; None when it names none that there is."""
        return next((cap for cap in cls if cap == spelled), None)

    @property
    def of_session(self) -> bool:
        return self.value.startswith("session.")

    @property
    def of_day(self) -> bool:
        return self.value.startswith("day.")

    @property
    def of_fleet(self) -> bool:
        return self.value.startswith("fleet.")

    @property
    def in_usd(self) -> bool:
        return self.value.endswith(".usd")

    @property
    def in_seconds(self) -> bool:
        return self.value.endswith(".wall")

    @property
    def unit(self) -> str:
        """What its amounts are counted in, in words."""
        return _UNITS[self.value.partition(".")[2]]


_UNITS = {"usd": "USD", "tokens": "tokens", "wall": "seconds", "calls": "tool calls"}
