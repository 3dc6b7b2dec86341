"""Sessions that wait at a cap of the day or of the fleet: raised once, or at midnight, every one that fits goes on by
itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from harness.budget.evidence import raised
from harness.domain.calls.approval_kind import Request
from harness.domain.calls.cap_request import CapRequest
from harness.domain.cap import Cap
from harness.events import types as t
from harness.projections.state.session_state import OpenApproval
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.fleet.session import Session
from harness.supervisor.money.budget_service import BudgetService
from harness.supervisor.money.figures import CapStanding

_LONGEST = 60.0
"""Seconds after which the day is looked at again, whatever the clock promised."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """One open request of a session at a cap above it, as it was asked: the limit then, what the next request needs,
    the day it was for.
    """

    approval_id: str
    cap: Cap
    limit: int
    need: int
    day: str
    asked: str


def freed(waiting: Iterable[Waiting], standing: Callable[[Cap], CapStanding]) -> dict[str, str]:
    """Requests that have become pointless, with the reason: their cap was raised, or its day is over, and there is room
    for the next request.

    The oldest come first and each takes its share of the room, so that a raise for one does not wake thirty. Room that
    only came from settlements frees nobody: it would be gone and asked for again with every reply of the others.
    """
    found: dict[str, str] = {}
    taken: dict[Cap, int] = {}
    for each in sorted(waiting, key=lambda w: (w.asked, w.approval_id)):
        now = standing(each.cap)
        if now.limit is None:
            found[each.approval_id] = f"{each.cap} is capped no more"
            continue
        over = each.cap.of_day and now.day > each.day
        room = now.limit - now.used - taken.get(each.cap, 0)
        if (over or now.limit > each.limit) and each.need <= room:
            taken[each.cap] = taken.get(each.cap, 0) + each.need
            found[each.approval_id] = f"a new day began: {now.day}" if over else f"{each.cap} was raised meanwhile"
    return found


def waits_at(asked: OpenApproval) -> Waiting | None:
    """What a request waits for; None when it is not about a cap above its session."""
    said = CapRequest.of(asked.detail)
    if asked.kind != Request.CAP or said is None or said.cap.of_session:
        return None
    return Waiting(asked.approval_id, said.cap, said.limit, said.need, said.day or asked.ts[:10], asked.ts)


class CapWaits:
    """Level-triggered, from the logs alone: ``step`` does what is due for one session, ``run`` says when time alone
    made something due.
    """

    def __init__(self, fleet: Fleet, budget_service: BudgetService) -> None:
        self._fleet = fleet
        self._purse = budget_service

    def _waiting(self) -> list[Waiting]:
        return [
            w
            for s in self._fleet
            if not s.finished
            for a in s.state.approvals.values()
            if (w := waits_at(a)) is not None
        ]

    def moved(self, asked: OpenApproval) -> CapRequest | None:
        """What this request would say now, where the cap that it is about has another limit since; else None."""
        at = waits_at(asked)
        if at is None or self._purse.books is None:
            return None
        now = self._purse.standing(at.cap)
        return None if now.limit in (None, at.limit) else CapRequest(at.cap, now.limit, now.used, at.need, at.day)

    async def step(self, session: Session) -> None:
        """Carry out the raises that were decided in this session, and let it go on when its cap holds it up no more.

        Raises OpError, LinkLost.
        """
        if self._purse.books is None:
            return
        for decided in list(session.track.raises.values()):
            await self._purse.follow(raised(decided))
        if not any(waits_at(a) for a in session.state.approvals.values()):
            return
        free = freed(self._waiting(), self._purse.standing)
        if mine := [a for a in session.state.approvals if a in free]:
            async with session.lock:  # not beside an answer of its user
                bodies = [t.ApprovalWithdrawn(approval_id=a, why=free[a]) for a in mine if a in session.state.approvals]
                if bodies:
                    await session.append(*bodies)

    def poke(self) -> None:
        """Something about the caps changed: every session that waits at one is looked at."""
        for session in self._fleet:
            if any(waits_at(a) for a in session.state.approvals.values()):
                session.wake()

    async def run(self) -> None:
        """Poke them when a new day begins, or when room has come behind a raise, until cancelled."""
        day = ""
        while True:
            if (books := self._purse.books) is None:
                await asyncio.sleep(1.0)
                continue
            if (today := books.today().day) != day:
                day = today
                self.poke()
            elif freed(self._waiting(), self._purse.standing):  # a raise that left too little room then
                self.poke()
            await asyncio.sleep(min(_LONGEST, books.clock.to_next_day() + 0.05))
