"""The ledger's figures as they are shown: of a session, of a day, and a cap above the sessions as it stands."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.events.types import Usage


@dataclass(frozen=True, slots=True)
class Spending:
    """One account as shown: nano-USD and tokens that were spent, and what is held for requests under way; the
    ``unknown_`` parts of what is spent are worst cases of requests of unknown outcome; see `ledger.Account`.
    """

    spent_nano: int = 0
    reserved_nano: int = 0
    tokens: int = 0
    price_source: str = ""
    requests: int = 0
    usage: Usage = field(default_factory=Usage)
    unknown_nano: int = 0
    unknown_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Day:
    """One day's totals; ``day`` is ``YYYY-MM-DD`` in UTC."""

    day: str
    spent_nano: int
    reserved_nano: int
    tokens: int
    requests: int = 0
    unknown_nano: int = 0
    unknown_tokens: int = 0


@dataclass(frozen=True, slots=True)
class CapStanding:
    """A cap above the sessions now: ``limit`` None = it is no more; ``day`` is the window that a request made now
    counts for, ``decision`` what it was raised by last.
    """

    used: int
    limit: int | None
    day: str
    decision: str = ""
