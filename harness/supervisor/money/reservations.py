"""The ledger on disk: reservations are durable before a request is sent, settlements before anybody is told the cost.

The arithmetic is `harness.budget.ledger`; this module is its only writer. One flush at a time runs in a thread and
carries every record that waits (group commit), so the event loop never waits for the disk. Reservations are checked and
held in memory before the first await, in one step: no two of them can both take what is left under a cap.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import sys
import traceback
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path

from harness.agents.supervisor_requests import Reserve
from harness.budget import evidence, prices
from harness.budget.ledger import CapReached, NotReserved
from harness.budget.ledger_types import LedgerRecord, Raised, Reserved, Settled, Unknown, to_wire
from harness.domain.cap import Cap
from harness.eventlog.framing import LogError
from harness.events.types import Caps, Usage
from harness.protocol.config.sections import CapsConfig
from harness.supervisor.base.errors import out_of_space
from harness.supervisor.base.threads import Threads, at_home
from harness.supervisor.money.day import Clock
from harness.supervisor.money.ledger_files import Opened, drop_anchor, evidence_of, open_ledger, settlement_of
from harness.supervisor.money.readings import Readings

_REMEMBERED = 4096


class LedgerUnavailable(Exception):
    """The ledger cannot take a record, so no request may be sent; the message says why.

    ``code`` is ``no_space`` or ``ledger``.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


class DurableLedger(Readings):
    """The one owner of the ledger. Use `open`; all methods belong to one event loop."""

    def __init__(
        self, made: Opened, sessions: Path, limits: Callable[[], CapsConfig], clock: Clock, thread: Threads
    ) -> None:
        self._folder = made.folder
        self._sessions = sessions
        super().__init__(made.ledger, made.sources, limits, clock)
        self._thread = thread
        self._log = made.log
        self.notes = made.notes
        self._settled: OrderedDict[str, Settled] = OrderedDict()
        self._settling: dict[str, asyncio.Task[Settled]] = {}
        self._waiting: list[tuple[LedgerRecord, asyncio.Future[None]]] = []
        self._flusher: asyncio.Task[None] | None = None
        self._raising = asyncio.Lock()
        self._closed = False
        self._doubtful = False
        self.problem = ""
        """Why the newest record could not be written; empty when it could."""

    @classmethod
    async def open(
        cls, folder: Path, limits: Callable[[], CapsConfig], sessions: Path | None = None, clock: Clock | None = None
    ) -> DurableLedger:
        """Open the ledger log, complete it from the logs below ``sessions`` where something of it is gone, and rebuild
        all accounts.

        ``limits`` gives the caps in force now, at each call; ``notes`` of the result say what was mended.
        Raises LedgerUnavailable when there is no space, or when the log is newer than us or open elsewhere.
        """
        sessions = folder.with_name("sessions") if sessions is None else sessions
        try:
            thread = Threads("the ledger", 1)
            made = await thread.call(open_ledger, folder, sessions)
        except (LogError, OSError) as exc:
            raise _unavailable(exc, f"the ledger in {folder} cannot be opened: {exc}") from exc
        return cls(made, sessions, limits, clock or Clock(), thread)

    async def close(self) -> None:
        """Write what waits and let go of the log."""
        self._closed = True
        while self._flusher is not None:
            await asyncio.shield(self._flusher)
        # without a newer anchor only less is known of a ledger that is lost later
        with contextlib.suppress(LogError, OSError):
            await self._thread.call(self._anchor)
        await self._thread.call(self._log.close)

    async def anchor(self) -> None:
        """Write down what every session has spent, durably. Raises LedgerUnavailable."""
        try:
            await self._thread.call(self._anchor)
        except OSError as exc:
            raise _unavailable(exc, f"what was spent cannot be written down: {exc.strerror or exc}") from exc

    def _anchor(self) -> None:
        drop_anchor(self._folder, self._log, self._ledger)

    # -- what is asked of it -----------------------------------------------------------------------

    async def reserve(
        self,
        sid: str,
        wanted: Reserve,
        caps: Caps,
        *,
        allowance_nano: int | None = None,
        gen: int = -1,
    ) -> Reserved:
        """Hold the worst case of one attempt against every cap above it; durable when this returns. The same attempt
        asked again gets the same answer.

        ``caps`` are the session's own; ``allowance_nano`` is what a human allowed on top of its USD cap to finish up;
        ``gen`` is the lease of the brain that asks. Raises CapReached, LedgerUnavailable.
        """
        known = self._ledger.requests.get((sid, wanted.request_id, wanted.attempt))
        if known is not None:
            record = self._ledger.open[known]
            await self._durable(None)
            if known not in self._ledger.open:
                raise LedgerUnavailable("ledger", "the reservation could not be written; ask again")
            return record
        worst = prices.worst_case(wanted.model, wanted.est_input, wanted.max_tokens, hour_writes=wanted.hour)
        record = Reserved(
            reservation=f"r{secrets.token_hex(8)}",
            sid=sid,
            request_id=wanted.request_id,
            attempt=wanted.attempt,
            nano=worst.nano,
            tokens=worst.tokens,
            day=self._day_now(),
            model=wanted.model,
            source=worst.source,
            limits=self.limits(caps, allowance_nano),
            gen=gen,
        )
        self._ledger.reserve(record)
        await self._durable(record)
        self._sources[sid] = record.source
        return record

    def raising(self, cap: Cap, limit: int, decision: str) -> Raised:
        """The raise that a decision means now.

        Raises KeyError on a cap that is not above the sessions, ValueError when nothing would rise.
        """
        base = self._configured()[cap]
        now = self.standing(cap)
        if base is None or now.limit is None or limit <= now.limit:
            held = "not capped" if now.limit is None else cap.words(now.limit)
            raise ValueError(f"{cap} is {held}; {cap.words(limit)} would not raise it")
        return Raised(cap=cap, limit=limit, base=base, day=now.day, decision=decision)

    async def follow(self, record: Raised) -> None:
        """Carry out a raise that is decided, once: one that holds already changes nothing.

        Raises LedgerUnavailable (follow it again later).
        """
        async with self._raising:
            held = self._ledger.limit(Cap(record.cap), record.base, record.day)
            if held is not None and held < record.limit:
                await self._durable(record)
                self._ledger.apply(record)

    async def settle(self, reservation: str, usage: Usage | None) -> Settled:
        """Replace a worst case by the real cost of ``usage`` at list price, which is never more.

        ``usage`` None: the outcome is unknown and the worst case counts as spent. Settling twice returns what the first
        one said. Raises NotReserved, LedgerUnavailable (nothing changed; settle again later).
        """

        def end(held: Reserved) -> Settled | Unknown:
            return Unknown(reservation=reservation) if usage is None else evidence.settled(held, usage)

        return await self._end(reservation, end)

    async def _end(self, reservation: str, end: Callable[[Reserved], Settled | Unknown]) -> Settled:
        if (done := self._settled.get(reservation)) is not None:
            return done
        if (running := self._settling.get(reservation)) is not None:
            return await asyncio.shield(running)
        task = asyncio.get_running_loop().create_task(self._ending(reservation, end))
        self._settling[reservation] = task
        task.add_done_callback(lambda _: self._settling.pop(reservation, None))
        return await asyncio.shield(task)

    async def _ending(self, reservation: str, end: Callable[[Reserved], Settled | Unknown]) -> Settled:
        held = self._ledger.open.get(reservation) or self._ledger.unknown.get(reservation)
        if held is None:
            raise NotReserved(f"reservation {reservation} does not exist or was settled")
        record = end(held)
        if isinstance(record, Unknown):
            if reservation in self._ledger.open:
                await self._durable(record)
                self._ledger.mark_unknown(reservation)
            return Settled(
                reservation=reservation, nano=held.nano, tokens=held.tokens, source="worst case, outcome unknown"
            )
        await self._durable(record)
        self._ledger.apply(record)
        self._sources[held.sid] = record.source if record.sent else self._sources.get(held.sid, "")
        self._settled[reservation] = record
        while len(self._settled) > _REMEMBERED:
            self._settled.popitem(last=False)
        return record

    def holding(self, sid: str, lease: int | None = None) -> list[str]:
        """The reservations of a session that no brain can settle any more, ``lease`` being the one that stands (None:
        none does).
        """
        mine = (r for r in self._ledger.open.values() if r.sid == sid)
        return [r.reservation for r in mine if lease is None or 0 <= r.gen < lease]

    async def conclude(self, sid: str, log: Path, lease: int | None = None) -> int:
        """End each of `holding` by what the session's log proves; how many there were. A brain without the lease can
        write nothing more.

        What was never sent costs nothing, what has a usage costs that, everything else counts in full. Raises
        LedgerUnavailable.
        """
        await self._durable(None)  # a reservation that did not reach the disk is gone by then
        return await self._by_log(sid, log, self.holding(sid, lease))

    async def forsake(self, sid: str, log: Path, wanted: Reserve, gen: int) -> None:
        """Before the brain of that lease reserves for another attempt: an earlier grant of which it never heard, and so
        sent nothing under, is let go. Raises LedgerUnavailable.
        """
        kept = (wanted.request_id, wanted.attempt)
        mine = [r for r in self._ledger.open.values() if r.sid == sid and 0 <= r.gen == gen]
        await self._by_log(sid, log, [r.reservation for r in mine if (r.request_id, r.attempt) != kept])

    async def _by_log(self, sid: str, log: Path, left: list[str]) -> int:
        if left:
            evidence = await at_home(evidence_of, log, sid)
            for reservation in left:
                if reservation in self._ledger.open:
                    await self._end(reservation, evidence.settlement)
        return len(left)

    async def settlement(self, reservation: str) -> Settled | None:
        """How a reservation was settled, by the ledger's own records. Raises LogError, OSError."""
        return await at_home(settlement_of, self._folder, reservation)

    def room(self, sid: str, nano: int, caps: Caps, allowance_nano: int) -> None:
        """Raise CapReached when a request of ``nano`` would pass a cap even with that allowance."""
        self._ledger.check(sid, self._day_now(), nano, 0, self.limits(caps, allowance_nano))

    # -- the disk ----------------------------------------------------------------------------------

    async def _durable(self, record: LedgerRecord | None) -> None:
        """Return once ``record`` (or everything that waits) is on the disk.

        Not undone when the caller is cancelled: the record may be there already.
        """
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
                batch = self._waiting
                self._waiting = []
                try:
                    if self._log.poisoned or self._doubtful:
                        await self._open_again(batch)
                    await self._thread.call(self._write, [record for record, _ in batch])
                except Exception as exc:
                    if not isinstance(exc, LogError | OSError):
                        traceback.print_exc(file=sys.stderr)
                        self._doubtful = True  # part of the batch may wait in the log's memory
                    failed = _unavailable(exc, f"the ledger cannot be written: {exc}")
                    self.problem = str(failed)
                    for record, done in batch:
                        if isinstance(record, Reserved):
                            self._ledger.release(record.reservation)
                        if not done.done():
                            done.set_exception(failed)
                            done.exception()
                else:
                    self.problem = ""
                    for _, done in batch:
                        if not done.done():
                            done.set_result(None)
        finally:
            self._flusher = None

    async def _open_again(self, batch: list[tuple[LedgerRecord, asyncio.Future[None]]]) -> None:
        """After a failed flush only the disk knows what is in the log: read it as a new supervisor would, and hold what
        waits. Raises LogError, OSError.
        """
        await self._thread.call(self._log.close)
        made = await self._thread.call(open_ledger, self._folder, self._sessions)
        self._log = made.log
        self._ledger = made.ledger
        self._doubtful = False
        for record, _ in (*batch, *self._waiting):
            if isinstance(record, Reserved) and record.reservation not in made.ledger.open:
                made.ledger.apply(record)

    def _write(self, records: list[LedgerRecord]) -> None:
        for record in records:
            kind, data = to_wire(record)
            self._log.append(kind, data, actor="supervisor")
        self._log.commit(True)


def _unavailable(exc: Exception, text: str) -> LedgerUnavailable:
    return LedgerUnavailable("no_space" if out_of_space(exc) else "ledger", text)


__all__ = ["CapReached", "DurableLedger", "LedgerUnavailable", "NotReserved"]
