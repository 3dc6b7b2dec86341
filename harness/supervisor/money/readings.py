"""What a ledger says, whether a supervisor keeps it or it lies on the disk of a fleet at rest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.budget.ledger import Account, Ledger
from harness.budget.ledger_types import CapsInForce
from harness.domain.cap import Cap
from harness.events.types import Caps
from harness.protocol.config.sections import CapsConfig
from harness.supervisor.money.day import Clock
from harness.supervisor.money.figures import CapStanding, Day, Spending
from harness.supervisor.money.ledger_files import replay
from harness.views.rows import Money


class Readings:
    """The figures of one ledger; ``limits`` gives the configured caps, at each call."""

    def __init__(self, ledger: Ledger, sources: dict[str, str], limits: Callable[[], CapsConfig], clock: Clock) -> None:
        self._ledger = ledger
        self._sources = sources
        self._limits = limits
        self.clock = clock

    @classmethod
    def at_rest(cls, folder: Path, limits: Callable[[], CapsConfig]) -> Readings:
        """Those of a ledger that nobody keeps; nothing of it is changed (blocking). Raises LogError, OSError,
        msgspec.DecodeError, NotReserved.
        """
        ledger, sources = replay(folder)
        return cls(ledger, sources, limits, Clock())

    def session(self, sid: str) -> Spending:
        """Totals of one session."""
        return _shown(self._ledger.sessions.get(sid, Account()), self._sources.get(sid, ""))

    def sessions(self) -> set[str]:
        """Every session that the ledger knows, those that were removed included."""
        return set(self._ledger.sessions)

    def fleet(self) -> Spending:
        """Totals over all time."""
        return _shown(self._ledger.fleet)

    def today(self) -> Day:
        """Totals of the day window that a reservation made now would count for."""
        return self._day(self._day_now())

    def days(self, last: int | None = 31) -> list[Day]:
        """The newest day windows (None: all), oldest first."""
        found = sorted(day for day, account in self._ledger.days.items() if account.requests or account.spent_nano)
        return [self._day(day) for day in (found if last is None else found[-last:])]

    def money(self, sid: str) -> Money:
        """One session's money, as rows show it."""
        a = self.session(sid)
        return Money(
            a.spent_nano,
            a.reserved_nano,
            a.price_source,
            a.tokens,
            a.requests,
            a.usage,
            a.unknown_nano,
            a.unknown_tokens,
        )

    def limits(self, caps: Caps, allowance_nano: int | None = None) -> CapsInForce:
        """Every cap in force for a session with these caps of its own; ``allowance_nano`` set = it is finishing up,
        tokens no longer count.
        """
        day = self._day_now()
        above = {cap: self._ledger.limit(cap, configured, day) for cap, configured in self._configured().items()}
        return CapsInForce(
            session_usd=None if caps.usd_nano is None else caps.usd_nano + (allowance_nano or 0),
            session_tokens=caps.tokens if allowance_nano is None else None,
            day_usd=above[Cap.DAY_USD],
            day_tokens=above[Cap.DAY_TOKENS],
            fleet_usd=above[Cap.FLEET_USD],
            fleet_tokens=above[Cap.FLEET_TOKENS],
        )

    def _configured(self) -> dict[Cap, int | None]:
        c = self._limits()
        return {
            Cap.DAY_USD: c.day_usd,
            Cap.DAY_TOKENS: c.day_tokens,
            Cap.FLEET_USD: c.fleet_usd,
            Cap.FLEET_TOKENS: c.fleet_tokens,
        }

    def standing(self, cap: Cap) -> CapStanding:
        """A cap of the day or of the fleet as it stands now. Raises KeyError on another cap."""
        day = self._day_now()
        limit = self._ledger.limit(cap, self._configured()[cap], day)
        raise_ = self._ledger.raised.get(cap)
        account = self._ledger.fleet if cap.of_fleet else self._ledger.days.get(day, Account())
        return CapStanding(
            account.nano if cap.in_usd else account.tokens,
            limit,
            day,
            "" if raise_ is None else raise_.decision,
        )

    def _day_now(self) -> str:
        return self._ledger.window(self.clock.today())

    def _day(self, day: str) -> Day:
        a = self._ledger.days.get(day, Account())
        return Day(day, a.spent_nano, a.held_nano, a.spent_tokens, a.requests, a.unknown_nano, a.unknown_tokens)


def _shown(a: Account, source: str = "") -> Spending:
    return Spending(
        a.spent_nano, a.held_nano, a.spent_tokens, source, a.requests, a.usage, a.unknown_nano, a.unknown_tokens
    )
