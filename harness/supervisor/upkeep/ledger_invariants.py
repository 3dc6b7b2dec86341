"""What must stay true of money (I5), over the ledger's own records and what the sessions' logs say they sent. Reads
only; a part of `invariants`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness.budget.ledger import Ledger, NotReserved
from harness.budget.ledger_types import LedgerRecord, Reserved, Settled, decode
from harness.eventlog import reader
from harness.eventlog.framing import LogError
from harness.events import types as t
from harness.events.body import UNSETTLED

Broken = tuple[str, str, str]
"""The invariant, the session (empty for the fleet), what is wrong."""


@dataclass(frozen=True, slots=True)
class Sent:
    """What one session's log says: the attempts of its requests, and what each reply cost and by which price."""

    attempts: Mapping[str, Sequence[t.ModelRequest]]
    costs: Mapping[str, tuple[int, str]]


def broken(folder: Path, sent: Mapping[str, Sent]) -> Iterator[Broken]:
    """Replay the ledger (read after the logs, so that it is ahead of them) and hold the logs' requests against it."""
    books = _Replay()
    try:
        for line in reader.read(folder) if folder.is_dir() else ():
            if (record := decode(line)) is not None:
                yield from books.take(record)
    except (LogError, msgspec.DecodeError, OSError) as exc:
        yield "I1", "", f"ledger: {exc}"
    for sid, one in sent.items():
        for request_id, attempts in one.attempts.items():
            for attempt in attempts:
                yield from books.reserved_for(sid, attempt)
            yield from books.paid_for(sid, attempts[-1], one.costs.get(request_id))


@dataclass(slots=True)
class _Replay:
    ledger: Ledger = field(default_factory=Ledger)
    reserved: dict[str, Reserved] = field(default_factory=dict)
    settled: dict[str, Settled] = field(default_factory=dict)
    day: str = ""

    def take(self, record: LedgerRecord) -> Iterator[Broken]:
        """The next record of the ledger."""
        try:
            self.ledger.apply(record)
        except NotReserved as exc:
            yield "I5", "", f"the ledger settles what is not held: {exc}"
            return
        if isinstance(record, Reserved):
            self.reserved[record.reservation] = record
            if record.day < self.day and not record.rebuilt:
                yield "I8", record.sid, f"reservation {record.reservation} reopens day {record.day} after {self.day}"
            self.day = max(self.day, record.day)
            yield from self._over(record)
        elif isinstance(record, Settled):
            self.settled[record.reservation] = record
            held = self.reserved.get(record.reservation)
            if held is not None and record.nano > held.nano:
                yield from self._over(held)

    def _over(self, held: Reserved) -> Iterator[Broken]:
        for cap, used, limit in self.ledger.over(held):
            yield "I5", held.sid, f"reservation {held.reservation}: {cap} stands at {used} of {limit}"

    def reserved_for(self, sid: str, attempt: t.ModelRequest) -> Iterator[Broken]:
        """An attempt was sent under a reservation of this session, and of this amount."""
        held = self.reserved.get(attempt.reservation)
        sent = f"request {attempt.request_id}"
        if held is None:
            told = f"{sent} was sent under reservation {attempt.reservation}, which the ledger does not know"
            yield "I5", sid, told
        elif held.sid != sid or held.nano != attempt.reserved_nano:
            told = f"{sent}: the ledger holds {held.nano} for {held.sid}, the log says {attempt.reserved_nano}"
            yield "I5", sid, told

    def paid_for(self, sid: str, last: t.ModelRequest, cost: tuple[int, str] | None) -> Iterator[Broken]:
        """A reply cost the same by the log and by the ledger."""
        if cost is None or cost[1] == UNSETTLED:
            return
        paid = self.settled.get(last.reservation)
        if paid is None or paid.nano != cost[0]:
            by_ledger = "nothing" if paid is None else paid.nano
            yield "I5", sid, f"request {last.request_id} cost {cost[0]} by the log and {by_ledger} by the ledger"
