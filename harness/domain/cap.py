"""The caps there are, as logs, ledger and requests spell them: ``<whose>.<unit>``. Pure, standard library only."""

from __future__ import annotations

from enum import StrEnum

from harness.domain.text.formatting import time_text, usd


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

    @classmethod
    def of_field(cls, field: str) -> Cap | None:
        """The session's cap that stands in this field of `types.Caps`; None for no field of it."""
        return next((cap for cap in OF_SESSION if cap.field == field), None)

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
    def setting(self) -> str:
        """Its name under ``[caps]`` in the configuration."""
        return self.value.replace(".", "_")

    @property
    def field(self) -> str:
        """What a session's caps call it (`types.Caps`)."""
        return _FIELDS[self.value.partition(".")[2]]

    @property
    def option(self) -> str:
        """How the command line is given one of a session."""
        return f"--cap-{self.value.partition('.')[2]}"

    def amount(self, value: int) -> str:
        """So much of it, as a person reads it."""
        if self.in_usd:
            return usd(value)
        return time_text(value) if self.in_seconds else f"{value:,}"

    def words(self, value: int) -> str:
        """So much of it, with its unit where the amount does not show it."""
        return self.amount(value) if self.in_usd or self.in_seconds else f"{value:,} {self.unit}"

    @property
    def named(self) -> str:
        """Whose cap on what it is, in words."""
        whose, _, what = self.value.partition(".")
        return f"{_WHOSE[whose]} {_WHAT[what]}"

    @property
    def unit(self) -> str:
        """What its amounts are counted in, in words."""
        return _UNITS[self.value.partition(".")[2]]


_UNITS = {"usd": "USD", "tokens": "tokens", "wall": "seconds", "calls": "tool calls"}
_WHOSE = {"session": "its", "day": "today's", "fleet": "the fleet's"}
_WHAT = {"usd": "money", "tokens": "tokens", "wall": "time", "calls": "tool calls"}
_FIELDS = {"usd": "usd_nano", "tokens": "tokens", "wall": "wall_s", "calls": "tool_calls"}
OF_SESSION = tuple(cap for cap in Cap if cap.of_session)
"""The caps that a session has of its own."""


def named(spelled: str) -> str:
    """A cap as a record names it, in words; as it is spelled when it is not known here."""
    cap = Cap.of(spelled)
    return spelled if cap is None else cap.named


def amount_of(spelled: str, value: int) -> str:
    """The same for a cap as a record names it, known here or not."""
    cap = Cap.of(spelled)
    return f"{value:,}" if cap is None else cap.amount(value)
