"""What the supervisor's other parts need of the ledger: the bridge between them and `reservations`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

import msgspec

from harness.agents.supervisor_requests import Reservation, Reserve, Settlement
from harness.budget import prices
from harness.budget.ledger_types import Raised
from harness.domain import problems
from harness.domain.cap import Cap, amount_of
from harness.domain.text.formatting import usd
from harness.eventlog.framing import LogError
from harness.events import types as t
from harness.events.message_parts import spelled
from harness.supervisor.base.errors import OpError
from harness.supervisor.fleet.session import Session
from harness.supervisor.money import reservations
from harness.supervisor.money.figures import CapStanding
from harness.supervisor.money.price_lists import PriceLists
from harness.supervisor.money.reservations import DurableLedger, LedgerUnavailable
from harness.views.rows import Money

_LAST_INPUT = 100_000
_LAST_OUTPUT = 8192
_WORDS = 2_000
"""Tokens that the demand to finish may add to a request that was refused."""
_PAUSE = 5.0
"""Seconds between two tries to open a ledger that cannot be opened."""
_WAITS = (
    "no request is sent meanwhile; it goes on by itself as soon as the ledger can be written (a full disk: free some"
    " space)"
)


class OverCap(Exception):
    """A reservation would pass a cap; nothing was reserved."""

    def __init__(self, reached: t.BudgetReached) -> None:
        super().__init__(
            f"the cap {reached.cap} would be passed: used {amount_of(reached.cap, reached.used)} of"
            f" {amount_of(reached.cap, reached.limit)}, needs {amount_of(reached.cap, reached.need)}"
        )
        self.reached = reached


class BudgetService:
    """The ledger for everybody else: sessions in, refusals out.

    While it cannot be opened, everything can be looked at and nothing spent.
    """

    def __init__(self, open_books: Callable[[], Awaitable[DurableLedger]]) -> None:
        self._open_books = open_books
        self.books: DurableLedger | None = None
        self._prices = PriceLists()
        self._why = OpError("ledger", "the ledger is not open yet", _WAITS)

    async def keep_open(self, opened: Callable[[], None], pause: float = _PAUSE) -> None:
        """Try again to open a ledger that could not be, until it is; ``opened`` is called then."""
        if self.books is not None:
            return
        while True:
            await asyncio.sleep(pause)
            if await self.open():
                return opened()

    async def open(self) -> bool:
        """Try to open the ledger; False (and `problem` says why) when it cannot be."""
        if self.books is None:
            try:
                self.books = await self._open_books()
            except LedgerUnavailable as exc:
                self._why = _refusal(exc)
        return self.books is not None

    async def close(self) -> None:
        """Write what waits and let go of the ledger."""
        if self.books is not None:
            await self.books.close()

    def _live(self) -> DurableLedger:
        if self.books is None:
            raise self._why
        return self.books

    @property
    def problem(self) -> str:
        """Why nothing can be spent now, in words; empty when it can."""
        if self.books is None:
            return f"{self._why.message}; {self._why.hint}"
        return f"{self.books.problem}; {_WAITS}" if self.books.problem else ""

    @property
    def notes(self) -> list[str]:
        """What had to be mended when the ledger was opened."""
        return [] if self.books is None else self.books.notes

    # -- requests ----------------------------------------------------------------------------------

    async def know_price(self, session: Session) -> None:
        """Have the price of its model at hand."""
        if session.state.intent is not None:
            await self._prices.fetch(session.state.intent.model)

    async def reserve(self, session: Session, wanted: Reserve) -> Reservation:
        """See `DurableLedger.reserve`. Raises OverCap, OpError ``no_space``, ``ledger``: then it only has to wait, and
        asks again by itself; the session says so meanwhile.
        """
        try:
            made = await self._reserve(session, wanted)
        except OpError as exc:
            session.block("money", problems.of_code(exc.code, exc.message))
            raise
        self.unasked(session)
        return made

    @staticmethod
    def unasked(session: Session) -> None:
        """Nothing of this session waits for the ledger now."""
        session.unblock("money")

    async def _reserve(self, session: Session, wanted: Reserve) -> Reservation:
        await self._prices.fetch(wanted.model)
        s = session.state
        allowance = None if s.finish_up is None else s.finish_up.allowance_nano
        day = self._live().today().day
        gen = session.state.lease_gen
        try:
            await self._live().forsake(session.sid, session.folder.log, wanted, gen)
            made = await self._live().reserve(session.sid, wanted, s.caps, allowance_nano=allowance, gen=gen)
        except reservations.CapReached as exc:
            raise OverCap(
                t.BudgetReached(
                    cap=exc.cap,
                    used=exc.used,
                    limit=exc.limit,
                    need=exc.need,
                    day=day if exc.cap.of_day else "",
                )
            ) from exc
        except LedgerUnavailable as exc:
            raise _refusal(exc) from exc
        return Reservation(made.reservation, made.nano)

    async def settle(self, reservation: str, usage: t.Usage | None) -> Settlement:
        """Settle by reported usage; None = outcome unknown, which counts in full, unless it was settled before: then
        that stands, and is told.

        Raises OpError ``unknown_reservation``, ``no_space``, ``ledger``.
        """
        await self._prices.renew()
        try:
            made = await self._live().settle(reservation, usage)
        except reservations.NotReserved as exc:
            known = None
            with contextlib.suppress(LogError, OSError):  # then nobody knows
                known = None if usage is not None else await self._live().settlement(reservation)
            if known is None:
                raise OpError("unknown_reservation", str(exc)) from exc
            made = known
        except LedgerUnavailable as exc:
            raise _refusal(exc) from exc
        return Settlement(made.nano, made.source, usage=made.usage)

    def holding(self, sid: str) -> bool:
        """True while a request of that session is held that nobody has settled."""
        return self.books is not None and bool(self.books.holding(sid))

    async def conclude(self, session: Session) -> None:
        """Settle what the session's earlier brains left open, from its log; see `DurableLedger.conclude`.

        Raises OpError ``no_space``, ``ledger``.
        """
        lease = None if session.state.lease is None else session.state.lease.gen
        if self.books is None or not self.books.holding(session.sid, lease):
            return
        try:
            await self.books.conclude(session.sid, session.folder.log, lease)
        except LedgerUnavailable as exc:
            raise _refusal(exc) from exc

    async def settle_open(self, session: Session) -> None:
        """What earlier brains left open is settled from the log, and what was settled late is said there.

        Raises OpError, LinkLost.
        """
        await self.conclude(session)
        if late := await self._settled_late(session):
            await session.append(*late)

    async def _settled_late(self, session: Session) -> list[t.ModelSettled]:
        """What those replies cost that nobody had settled when they came, as far as that is known by now; for the log,
        which says it behind the ledger.

        Raises OpError ``ledger``.
        """
        if self.books is None or not session.state.unsettled:
            return []
        found = []
        held = self.books.holding(session.sid)
        for reservation, reply in list(session.state.unsettled.items()):
            try:
                cost = None if reservation in held else await self.books.settlement(reservation)
            except (LogError, OSError) as exc:
                raise OpError("ledger", f"the ledger cannot be read: {exc}", _WAITS) from exc
            if cost is not None:
                found.append(msgspec.structs.replace(reply, cost_nano=cost.nano, price_source=cost.source))
        return found

    async def remember(self) -> None:
        """What was spent is on record beside the ledger: said before a session is removed. Raises OpError."""
        try:
            await self._live().anchor()
        except LedgerUnavailable as exc:
            raise _refusal(exc) from exc

    # -- caps --------------------------------------------------------------------------------------

    async def finish(self, session: Session, cap: Cap, saying: str = "") -> t.FinishUp:
        """The allowance for one last reply, to what was said since and ``saying`` too: what the refused request needed
        beyond the session's USD cap, and these words.

        Raises OpError.
        """
        s = session.state
        books = self._live()
        if not cap.of_session:
            raise OpError(
                "cap",
                f"{cap} is a cap above this session, so it cannot finish up past it",
                f"raise {cap} first, or stop the session",
            )
        last = s.budget
        need = 0
        if last is not None and last.cap == Cap.SESSION_USD:
            need = last.need
        elif s.request is not None:
            need = s.request.reserved_nano
        model = s.intent.model if s.intent is not None else ""
        words = s.unasked + spelled(saying)
        need = (
            need + prices.worst_case(model, _WORDS + words, 0).nano
            if need
            else prices.worst_case(model, max(_LAST_INPUT, s.context.tokens) + words, _LAST_OUTPUT).nano
        )
        used = books.session(session.sid)
        beyond = 0 if s.caps.usd_nano is None else max(0, used.spent_nano + used.reserved_nano + need - s.caps.usd_nano)
        try:
            books.room(session.sid, need, s.caps, beyond)
        except reservations.CapReached as exc:
            raise OpError(
                "cap",
                f"one last reply may cost {usd(need)} and would pass {exc.cap}",
                f"raise {exc.cap} first, or stop the session",
            ) from exc
        return t.FinishUp(allowance_nano=beyond)

    def standing(self, cap: Cap) -> CapStanding:
        """A cap of the day or the fleet now. Raises OpError."""
        try:
            return self._live().standing(cap)
        except KeyError as exc:
            raise OpError("bad_option", f"{cap} is not a cap of the day or the fleet") from exc

    def raising(self, cap: Cap, limit: int, decision: str) -> Raised:
        """See `DurableLedger.raising`. Raises OpError ``bad_option``, ``bad_value``."""
        try:
            return self._live().raising(cap, limit, decision)
        except KeyError as exc:
            raise OpError("bad_option", f"{cap} is not a cap of the day or the fleet") from exc
        except ValueError as exc:
            raise OpError("bad_value", str(exc)) from exc

    async def follow(self, raise_: Raised) -> None:
        """See `DurableLedger.follow`. Raises OpError ``no_space``, ``ledger``."""
        try:
            await self._live().follow(raise_)
        except LedgerUnavailable as exc:
            raise _refusal(exc) from exc

    # -- figures -----------------------------------------------------------------------------------

    def of(self, sid: str) -> Money:
        """One session's money; unknown while the ledger is closed, then its log's own figures stand."""
        return Money() if self.books is None else self.books.money(sid)


def _refusal(exc: LedgerUnavailable) -> OpError:
    return OpError(exc.code, str(exc), _WAITS)
