"""The ledger on disk: reservations are durable before a request is sent, settlements before anybody is told the cost.

The arithmetic is `harness.budget.caps`; this module is its only writer. One flush at a time runs in a thread and carries every
record that waits (group commit), so the event loop never waits for the disk. Reservations are checked and held in memory
before the first await, in one step: no two of them can both take what is left under a cap.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from harness.budget import prices
from harness.budget.caps import CapReached, Ledger, NotReserved
from harness.budget.ledger_types import LedgerRecord, Limits, Raised, Reserved, Settled, Unknown, decode, to_wire
from harness.events.framing import LogError
from harness.events.log import LogWriter
from harness.events.reader import read
from harness.events.types import BudgetReached, Caps, FinishUp, Usage
from harness.protocol.config import CapsConfig
from harness.supervisor import money
from harness.supervisor.errors import OpError
from harness.supervisor.fleet import Money, Session
from harness.supervisor.threads import Threads

LEDGER_ID = "ledger"
_REMEMBERED = 4096
_JUMP_S = 3600.0
_LAST_INPUT, _LAST_OUTPUT = 100_000, 8192


class LedgerUnavailable(Exception):
    """The ledger cannot take a record, so no request may be sent; the message says why. ``code`` is ``no_space`` or ``ledger``."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Account:
    """One account as shown: nano-USD and tokens, spent for certain and held for requests under way."""

    spent_nano: int = 0
    reserved_nano: int = 0
    tokens: int = 0
    price_source: str = ""


@dataclass(frozen=True, slots=True)
class Day:
    """One day's totals; ``day`` is ``YYYY-MM-DD`` in UTC."""

    day: str
    spent_nano: int
    reserved_nano: int
    tokens: int


class _Clock:
    """Today's date by a clock that a jump of the wall clock does not move: a jump over an hour keeps the old day until restart."""

    def __init__(self) -> None:
        self._wall, self._boot = time.time(), time.clock_gettime(time.CLOCK_BOOTTIME)
        self.jumped = False

    def today(self) -> str:
        expected = self._wall + time.clock_gettime(time.CLOCK_BOOTTIME) - self._boot
        self.jumped = abs(time.time() - expected) > _JUMP_S
        return datetime.fromtimestamp(expected if self.jumped else time.time(), UTC).strftime("%Y-%m-%d")


class Bookkeeper:
    """The one owner of the ledger. Use `open`; all methods belong to one event loop."""

    def __init__(self, log: LogWriter, ledger: Ledger, limits: Callable[[], CapsConfig], sources: dict[str, str], thread: Threads) -> None:
        self._log, self._ledger, self._limits, self._sources, self._thread = log, ledger, limits, sources, thread
        self._settled: OrderedDict[str, Settled] = OrderedDict()
        self._settling: dict[str, asyncio.Task[Settled]] = {}
        self._waiting: list[tuple[LedgerRecord, asyncio.Future[None]]] = []
        self._flusher: asyncio.Task[None] | None = None
        self._clock = _Clock()
        self._closed = False

    @classmethod
    async def open(cls, folder: Path, limits: Callable[[], CapsConfig]) -> Bookkeeper:
        """Recover the ledger log and rebuild all accounts. ``limits`` gives the caps in force now, at each call.

        Raises LedgerUnavailable when the log is damaged, newer than us or open elsewhere.
        """
        try:
            thread = Threads("the ledger", 1)
            log, ledger, sources = await thread.call(_load, folder)
        except (LogError, OSError, msgspec.DecodeError, NotReserved) as exc:
            raise LedgerUnavailable("ledger", f"the ledger in {folder} cannot be used: {exc}; no request is sent until it is repaired or moved away") from exc
        return cls(log, ledger, limits, sources, thread)

    async def close(self) -> None:
        """Write what waits and let go of the log."""
        self._closed = True
        while self._flusher is not None:
            await asyncio.shield(self._flusher)
        await self._thread.call(self._log.close)

    @property
    def clock_jumped(self) -> bool:
        """True while the wall clock is more than an hour off from where it should be: the day window stays where it was."""
        return self._clock.jumped

    # -- what is asked of it -----------------------------------------------------------------------------------------

    async def reserve(
        self, sid: str, request_id: str, attempt: int, model: str, est_input: int, max_tokens: int, caps: Caps, *, allowance_nano: int | None = None
    ) -> Reserved:
        """Hold the worst case of one attempt against every cap above it; durable when this returns. The same attempt asked again gets the same answer.

        ``caps`` are the session's own; ``allowance_nano`` is what a human allowed on top of its USD cap to finish up.
        Raises CapReached, LedgerUnavailable.
        """
        known = self._ledger.requests.get((sid, request_id, attempt))
        if known is not None:
            record = self._ledger.open[known]
            await self._durable(None)
            if known not in self._ledger.open:
                raise LedgerUnavailable("ledger", "the reservation could not be written; ask again")
            return record
        worst = prices.worst_case(model, est_input, max_tokens)
        record = Reserved(
            reservation=f"r{secrets.token_hex(8)}",
            sid=sid,
            request_id=request_id,
            attempt=attempt,
            nano=worst.nano,
            tokens=worst.tokens,
            day=self._ledger.window(self._clock.today()),
            model=model,
            source=worst.source,
            limits=self.limits(caps, allowance_nano),
        )
        self._ledger.reserve(record)
        await self._durable(record)
        self._sources[sid] = record.source
        return record

    def limits(self, caps: Caps, allowance_nano: int | None = None) -> Limits:
        """Every cap in force for a session with these caps of its own; ``allowance_nano`` set = it is finishing up, tokens no longer count."""
        day = self._ledger.window(self._clock.today())
        above = {cap: self._ledger.limit(cap, configured, day) for cap, configured in self._configured().items()}
        return Limits(
            session_usd=None if caps.usd_nano is None else caps.usd_nano + (allowance_nano or 0),
            session_tokens=caps.tokens if allowance_nano is None else None,
            day_usd=above["day.usd"],
            day_tokens=above["day.tokens"],
            fleet_usd=above["fleet.usd"],
            fleet_tokens=above["fleet.tokens"],
        )

    def _configured(self) -> dict[str, int | None]:
        c = self._limits()
        return {"day.usd": c.day_usd, "day.tokens": c.day_tokens, "fleet.usd": c.fleet_usd, "fleet.tokens": c.fleet_tokens}

    async def raise_cap(self, cap: str, limit: int) -> None:
        """Durably raise a configured cap of today or of the fleet. Raises KeyError on another cap, ValueError when it would not rise, LedgerUnavailable."""
        day = self._ledger.window(self._clock.today())
        base = self._configured()[cap]
        now = self._ledger.limit(cap, base, day)
        if base is None or now is None or limit <= now:
            raise ValueError(f"{cap} is {'not capped' if now is None else now}; {limit} would not raise it")
        record = Raised(cap=cap, limit=limit, base=base, day=day)
        await self._durable(record)
        self._ledger.apply(record)

    async def settle(self, reservation: str, usage: Usage | None, cost_nano: int | None = None) -> Settled:
        """Replace a worst case by the real cost: of ``usage`` at list price, or ``cost_nano`` when that is more.

        ``usage`` None: the outcome is unknown and the worst case counts as spent. Settling twice returns what the first one said.
        Raises NotReserved, LedgerUnavailable (nothing changed; settle again later).
        """
        if (done := self._settled.get(reservation)) is not None:
            return done
        if (running := self._settling.get(reservation)) is not None:
            return await asyncio.shield(running)
        task = asyncio.get_running_loop().create_task(self._settle(reservation, usage, cost_nano))
        self._settling[reservation] = task
        task.add_done_callback(lambda _: self._settling.pop(reservation, None))
        return await asyncio.shield(task)

    async def _settle(self, reservation: str, usage: Usage | None, cost_nano: int | None) -> Settled:
        held = self._ledger.open.get(reservation) or self._ledger.unknown.get(reservation)
        if held is None:
            raise NotReserved(f"reservation {reservation} does not exist or was settled")
        if usage is None:
            if reservation in self._ledger.open:
                await self._durable(Unknown(reservation=reservation))
                self._ledger.mark_unknown(reservation)
            return Settled(reservation=reservation, nano=held.nano, tokens=held.tokens, source="worst case, outcome unknown")
        found = prices.cost(held.model, usage)
        record = Settled(reservation=reservation, nano=max(found.nano, cost_nano or 0), tokens=found.tokens, source=found.source)
        await self._durable(record)
        self._ledger.settle(reservation, record.nano, record.tokens)
        self._sources[held.sid] = record.source
        self._settled[reservation] = record
        while len(self._settled) > _REMEMBERED:
            self._settled.popitem(last=False)
        return record

    async def abandon(self, sid: str) -> int:
        """Count every open reservation of an ended session as spent; returns how many there were. Raises LedgerUnavailable."""
        left = [r.reservation for r in self._ledger.open.values() if r.sid == sid]
        for reservation in left:
            await self.settle(reservation, None)
        return len(left)

    # -- what it knows -----------------------------------------------------------------------------------------------

    def session(self, sid: str) -> Account:
        """Totals of one session."""
        a = self._ledger.sessions.get(sid)
        return Account() if a is None else Account(a.spent_nano, a.held_nano, a.tokens, self._sources.get(sid, ""))

    def fleet(self) -> Account:
        """Totals over all time."""
        a = self._ledger.fleet
        return Account(a.spent_nano, a.held_nano, a.tokens)

    def today(self) -> Day:
        """Totals of the day window that a reservation made now would count for."""
        return self._day(self._ledger.window(self._clock.today()))

    def days(self, last: int = 31) -> list[Day]:
        """The newest day windows, oldest first."""
        return [self._day(day) for day in sorted(self._ledger.days)[-last:]]

    def room(self, sid: str, nano: int, caps: Caps, allowance_nano: int) -> None:
        """Raise CapReached when a request of ``nano`` would pass a cap even with that allowance."""
        self._ledger.check(sid, self._ledger.window(self._clock.today()), nano, 0, self.limits(caps, allowance_nano))

    def _day(self, day: str) -> Day:
        a = self._ledger.days.get(day)
        return Day(day, 0, 0, 0) if a is None else Day(day, a.spent_nano, a.held_nano, a.tokens)

    # -- the disk ----------------------------------------------------------------------------------------------------

    async def _durable(self, record: LedgerRecord | None) -> None:
        """Return once ``record`` (or everything that waits) is on the disk. Not undone when the caller is cancelled: the record may be there already."""
        if self._closed:
            raise LedgerUnavailable("ledger", "the ledger is closed; the supervisor is stopping")
        loop = asyncio.get_running_loop()
        if record is None:
            if self._flusher is not None:
                await asyncio.shield(self._flusher)
            return
        done: asyncio.Future[None] = loop.create_future()
        self._waiting.append((record, done))
        if self._flusher is None:
            self._flusher = loop.create_task(self._flush())
        await asyncio.shield(done)

    async def _flush(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                try:
                    await self._thread.call(self._write, [record for record, _ in batch])
                except (LogError, OSError, ValueError) as exc:
                    code = "no_space" if type(exc).__name__ == "NoSpace" else "ledger"
                    for record, done in batch:
                        if isinstance(record, Reserved):
                            self._ledger.release(record.reservation)
                        if not done.done():
                            done.set_exception(LedgerUnavailable(code, f"the ledger cannot be written: {exc}"))
                            done.exception()
                else:
                    for _, done in batch:
                        if not done.done():
                            done.set_result(None)
        finally:
            self._flusher = None

    def _write(self, records: list[LedgerRecord]) -> None:
        for record in records:
            kind, data = to_wire(record)
            self._log.append(kind, data, actor="supervisor")
        self._log.commit(True)


class LedgerPurse:
    """The `Bookkeeper` as the supervisor's other parts see it (`harness.supervisor.money.Purse`): sessions in, refusals out."""

    def __init__(self, books: Bookkeeper) -> None:
        self.books = books

    async def reserve(self, session: Session, request_id: str, attempt: int, model: str, est_input: int, max_tokens: int) -> money.Reserved:
        """See `Bookkeeper.reserve`. Raises money.CapReached, OpError."""
        s = session.state
        allowance = None if s.finish_up is None else s.finish_up.allowance_nano
        try:
            made = await self.books.reserve(session.sid, request_id, attempt, model, est_input, max_tokens, s.caps, allowance_nano=allowance)
        except CapReached as exc:
            raise money.CapReached(BudgetReached(cap=exc.cap, used=exc.used, limit=exc.limit, need=exc.need)) from exc
        except LedgerUnavailable as exc:
            raise _refusal(exc) from exc
        return money.Reserved(made.reservation, made.nano)

    async def settle(self, session: Session, reservation: str, usage: Usage | None) -> money.Settled:
        """See `Bookkeeper.settle`. Raises OpError ``unknown_reservation``, ``no_space``, ``ledger``."""
        try:
            made = await self.books.settle(reservation, usage)
        except NotReserved as exc:
            raise OpError("unknown_reservation", str(exc)) from exc
        except LedgerUnavailable as exc:
            raise _refusal(exc) from exc
        return money.Settled(made.nano, made.source)

    async def finish(self, session: Session, cap: str) -> FinishUp:
        """The allowance for one last reply: what the refused request needed beyond the session's USD cap. Raises OpError."""
        s = session.state
        if not cap.startswith("session."):
            raise OpError("cap", f"{cap} is a cap above this session, so it cannot finish up past it", f"raise {cap} first, or stop the session")
        last = s.budget
        need = last.need if last is not None and last.cap == "session.usd" else s.request.reserved_nano if s.request is not None else 0
        if not need:
            model = s.intent.model if s.intent is not None else ""
            need = prices.worst_case(model, _LAST_INPUT, _LAST_OUTPUT).nano
        used = self.books.session(session.sid)
        beyond = 0 if s.caps.usd_nano is None else max(0, used.spent_nano + used.reserved_nano + need - s.caps.usd_nano)
        try:
            self.books.room(session.sid, need, s.caps, beyond)
        except CapReached as exc:
            raise OpError("cap", f"one last reply may cost {need} nano-USD and would pass {exc.cap}", f"raise {exc.cap} first, or stop the session") from exc
        return FinishUp(allowance_nano=beyond)

    async def raise_fleet_cap(self, cap: str, value: int) -> None:
        """See `Bookkeeper.raise_cap`. Raises OpError."""
        try:
            await self.books.raise_cap(cap, value)
        except KeyError as exc:
            raise OpError("bad_option", f"{cap} is not a cap of the day or the fleet") from exc
        except ValueError as exc:
            raise OpError("bad_option", str(exc)) from exc
        except LedgerUnavailable as exc:
            raise _refusal(exc) from exc

    def of(self, sid: str) -> Money:
        """One session's money."""
        a = self.books.session(sid)
        return Money(a.spent_nano, a.reserved_nano, a.price_source)

    def totals(self) -> money.Totals:
        """The fleet's money."""
        all_time, day, limits = self.books.fleet(), self.books.today(), self.books.limits(Caps())
        return money.Totals(day.spent_nano, all_time.spent_nano, all_time.reserved_nano, limits.day_usd, limits.fleet_usd)


def _refusal(exc: LedgerUnavailable) -> OpError:
    return OpError(exc.code, str(exc), "free some space" if exc.code == "no_space" else "run: watchfloor doctor")


def _load(folder: Path) -> tuple[LogWriter, Ledger, dict[str, str]]:
    log = LogWriter.open(folder, LEDGER_ID)
    try:
        ledger, sources = Ledger(), {}
        for line in read(folder):
            record = decode(line)
            if record is None:
                continue
            ledger.apply(record)
            if isinstance(record, Reserved):
                sources[record.sid] = record.source
    except BaseException:
        log.close()
        raise
    return log, ledger, sources


__all__ = ["Account", "Bookkeeper", "CapReached", "Day", "LedgerPurse", "LedgerUnavailable", "NotReserved"]
