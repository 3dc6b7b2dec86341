"""The ledger in memory: what is spent and held against every cap. Pure; the only state is what the records said.

Invariant, for every account with a cap: spent + held ≤ cap after every `reserve`, and a `settle` at or below the worst
case keeps it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from harness.budget.ledger_types import CapsInForce, LedgerRecord, Raised, Reserved, Settled, Unknown
from harness.domain.cap import Cap
from harness.events.types import Usage


class CapReached(Exception):
    """A reservation would pass a cap.

    Used (spent + held), limit and need are in its unit.
    """

    def __init__(self, cap: Cap, used: int, limit: int, need: int) -> None:
        super().__init__(f"{cap}: {used} of {limit} used or held, {need} more needed")
        self.cap = cap
        self.used = used
        self.limit = limit
        self.need = need


class NotReserved(Exception):
    """There is no such reservation, or it was settled already."""


@dataclass(slots=True)
class Account:
    """Totals of one account: spent for certain or counted so, and held by open reservations. ``unknown_*`` are the part
    of what is spent that is the worst case of requests of unknown outcome.

    ``requests`` were or may have been sent; ``usage`` is what the endpoint reported, so without those of unknown
    outcome.
    """

    spent_nano: int = 0
    spent_tokens: int = 0
    held_nano: int = 0
    held_tokens: int = 0
    unknown_nano: int = 0
    unknown_tokens: int = 0
    requests: int = 0
    usage: Usage = field(default_factory=Usage)

    @property
    def nano(self) -> int:
        return self.spent_nano + self.held_nano

    @property
    def tokens(self) -> int:
        return self.spent_tokens + self.held_tokens


@dataclass(slots=True)
class Ledger:
    """All accounts. ``day`` is the newest day window ever used; it never goes back."""

    fleet: Account = field(default_factory=Account)
    sessions: dict[str, Account] = field(default_factory=dict)
    days: dict[str, Account] = field(default_factory=dict)
    parts: dict[tuple[str, str], Account] = field(default_factory=dict)
    """(sid, day): what one session spent on one day."""
    open: dict[str, Reserved] = field(default_factory=dict)
    unknown: dict[str, Reserved] = field(default_factory=dict)
    requests: dict[tuple[str, str, int], str] = field(default_factory=dict)
    """(sid, request id, attempt) → reservation, while it is open."""
    raised: dict[str, Raised] = field(default_factory=dict)
    """The newest raise of each cap of the day or the fleet."""
    day: str = ""

    def limit(self, cap: Cap, configured: int | None, day: str) -> int | None:
        """The cap in force on ``day``: the configured one, or what a human raised it to since."""
        raised = self.raised.get(cap)
        if configured is None or raised is None or raised.base != configured or (cap.of_day and raised.day != day):
            return configured
        return max(configured, raised.limit)

    def window(self, today: str) -> str:
        """The day window of a reservation made on ``today`` (``YYYY-MM-DD``): today, or the newest one when the clock
        went back.
        """
        return max(self.day, today)

    def accounts(self, sid: str, day: str) -> tuple[Account, Account, Account]:
        """The accounts above a request: its session's, its day's and the fleet's."""
        return self.sessions.setdefault(sid, Account()), self.days.setdefault(day, Account()), self.fleet

    def _all(self, record: Reserved) -> tuple[Account, ...]:
        """Every account that one request counts in, so that all sums are sums of the same amounts."""
        return (*self.accounts(record.sid, record.day), self.parts.setdefault((record.sid, record.day), Account()))

    def check(self, sid: str, day: str, nano: int, tokens: int, limits: CapsInForce) -> None:
        """Raise CapReached naming the first cap that ``nano`` and ``tokens`` more would pass; a cap of 0 allows nothing
        that costs.
        """
        session, today, fleet = self.accounts(sid, day)
        for cap, used, limit, need in (
            (Cap.SESSION_USD, session.nano, limits.session_usd, nano),
            (Cap.SESSION_TOKENS, session.tokens, limits.session_tokens, tokens),
            (Cap.DAY_USD, today.nano, limits.day_usd, nano),
            (Cap.DAY_TOKENS, today.tokens, limits.day_tokens, tokens),
            (Cap.FLEET_USD, fleet.nano, limits.fleet_usd, nano),
            (Cap.FLEET_TOKENS, fleet.tokens, limits.fleet_tokens, tokens),
        ):
            if limit is not None and used + need > limit:
                raise CapReached(cap, used, limit, need)

    def reserve(self, record: Reserved) -> None:
        """Hold the worst case in every account at once, or raise CapReached and change nothing.

        Raises ValueError on a reused id.
        """
        if record.reservation in self.open or record.reservation in self.unknown:
            raise ValueError(f"reservation {record.reservation} exists")
        self.check(record.sid, record.day, record.nano, record.tokens, record.limits)
        self._hold(record)

    def _hold(self, record: Reserved) -> None:
        for account in self._all(record):
            account.held_nano += record.nano
            account.held_tokens += record.tokens
            account.requests += 1
        self.open[record.reservation] = record
        self.requests[record.sid, record.request_id, record.attempt] = record.reservation
        self.day = max(self.day, record.day)

    def release(self, reservation: str) -> None:
        """Take back a reservation that never became durable."""
        for account in self._all(self._close(reservation)):
            account.requests -= 1

    def _close(self, reservation: str) -> Reserved:
        record = self.open.pop(reservation, None)
        if record is not None:
            for account in self._all(record):
                account.held_nano -= record.nano
                account.held_tokens -= record.tokens
            self.requests.pop((record.sid, record.request_id, record.attempt), None)
            return record
        record = self.unknown.pop(reservation, None)
        if record is None:
            raise NotReserved(f"reservation {reservation} does not exist or is settled")
        for account in self._all(record):
            account.spent_nano -= record.nano
            account.spent_tokens -= record.tokens
            account.unknown_nano -= record.nano
            account.unknown_tokens -= record.tokens
        return record

    def settle(
        self, reservation: str, nano: int, tokens: int, usage: Usage | None = None, *, sent: bool = True
    ) -> Reserved:
        """Replace a worst case (also one counted as unknown) by the real cost. Raises NotReserved."""
        if nano < 0 or tokens < 0:
            raise ValueError("a cost is not negative")
        record = self._close(reservation)
        for account in self._all(record):
            account.spent_nano += nano
            account.spent_tokens += tokens
            account.requests -= not sent
            if usage is not None:
                account.usage += usage
        return record

    def mark_unknown(self, reservation: str) -> Reserved:
        """Count an open reservation in full, as spent. Raises NotReserved unless it is open."""
        if reservation not in self.open:
            raise NotReserved(f"reservation {reservation} is not open")
        record = self.settle(reservation, self.open[reservation].nano, self.open[reservation].tokens)
        for account in self._all(record):
            account.unknown_nano += record.nano
            account.unknown_tokens += record.tokens
        self.unknown[reservation] = record
        return record

    def apply(self, record: LedgerRecord) -> None:
        """Follow a durable record when rebuilding: it happened, whatever the caps say.

        Raises NotReserved on one that cannot follow.
        """
        match record:
            case Reserved():
                self._hold(record)
            case Settled():
                self.settle(record.reservation, record.nano, record.tokens, record.usage, sent=record.sent)
            case Unknown():
                self.mark_unknown(record.reservation)
            case Raised():
                self.raised[record.cap] = record

    def over(self, record: Reserved) -> Iterator[tuple[Cap, int, int]]:
        """(cap, used, limit) of every cap that the accounts of ``record`` stand above now."""
        session, day, fleet = self.accounts(record.sid, record.day)
        limits = record.limits
        for cap, used, limit in (
            (Cap.SESSION_USD, session.nano, limits.session_usd),
            (Cap.SESSION_TOKENS, session.tokens, limits.session_tokens),
            (Cap.DAY_USD, day.nano, limits.day_usd),
            (Cap.DAY_TOKENS, day.tokens, limits.day_tokens),
            (Cap.FLEET_USD, fleet.nano, limits.fleet_usd),
            (Cap.FLEET_TOKENS, fleet.tokens, limits.fleet_tokens),
        ):
            if limit is not None and used > limit:
                yield cap, used, limit
