"""What the supervisor's other parts need of the ledger: the interface between them and ``caps.py``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from harness.events import types as t
from harness.supervisor.errors import OpError
from harness.supervisor.fleet import Money, Session


@dataclass(frozen=True, slots=True)
class Reserved:
    """A granted reservation: its id and its worst case in nano-USD."""

    reservation: str
    nano: int


@dataclass(frozen=True, slots=True)
class Settled:
    """What an attempt counts for, in nano-USD, and where the price came from."""

    nano: int
    source: str


@dataclass(frozen=True, slots=True)
class Totals:
    """Money of the whole fleet in nano-USD."""

    today: int = 0
    total: int = 0
    reserved: int = 0
    day_cap: int | None = None
    fleet_cap: int | None = None


class CapReached(Exception):
    """A reservation would pass a cap; nothing was reserved."""

    def __init__(self, reached: t.BudgetReached) -> None:
        super().__init__(f"the cap {reached.cap} would be passed: used {reached.used} of {reached.limit}, needs {reached.need}")
        self.reached = reached


class Purse(Protocol):
    """Reservations against every cap, durable before they count as granted."""

    async def reserve(self, session: Session, request_id: str, attempt: int, model: str, est_input: int, max_tokens: int) -> Reserved:
        """Raises CapReached; OpError when the ledger cannot be written."""

    async def settle(self, session: Session, reservation: str, usage: t.Usage | None) -> Settled:
        """Settle by reported usage; None = outcome unknown, which counts in full. Raises OpError ``unknown_reservation``."""

    async def finish(self, session: Session, cap: str) -> t.FinishUp:
        """The allowance of one last reply, made room for in the caps. Raises OpError when a cap above the session forbids it."""

    async def raise_fleet_cap(self, cap: str, value: int) -> None:
        """Durably raise a cap of the day or the fleet. Raises OpError on an unknown cap."""

    def of(self, sid: str) -> Money:
        """One session's money."""

    def totals(self) -> Totals:
        """The fleet's money."""


class ClosedPurse:
    """The purse of a supervisor whose ledger cannot be used: everything can be looked at, nothing can be spent."""

    def __init__(self, why: str) -> None:
        self._why = why

    def _refusal(self) -> OpError:
        return OpError("ledger", self._why, "run: watchfloor doctor")

    async def reserve(self, session: Session, request_id: str, attempt: int, model: str, est_input: int, max_tokens: int) -> Reserved:
        """Always refused."""
        raise self._refusal()

    async def settle(self, session: Session, reservation: str, usage: t.Usage | None) -> Settled:
        """Always refused."""
        raise self._refusal()

    async def finish(self, session: Session, cap: str) -> t.FinishUp:
        """Always refused."""
        raise self._refusal()

    async def raise_fleet_cap(self, cap: str, value: int) -> None:
        """Always refused."""
        raise self._refusal()

    def of(self, sid: str) -> Money:
        """Unknown: the logs' own figures stand."""
        return Money()

    def totals(self) -> Totals:
        """Unknown."""
        return Totals()
