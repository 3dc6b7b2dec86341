"""What a session's own log proves about money: which reservations were sent, what came of them, which caps a human
raised. Pure.

A request is on record before it is sent, so a reservation that no record names cost nothing once its brain may write no
more; and a reply's usage is on record with it, so whatever the ledger missed can be counted exactly from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from harness.budget import prices
from harness.budget.ledger_types import LedgerRecord, Raised, Reserved, Settled, Unknown
from harness.events import types as t
from harness.events.body import UNSETTLED, Usage

NEVER_SENT = "never sent"
ANCHORED = "what the ledger said before"
REBUILT = "rebuilt"
_KINDS = (b'"type":"model.', b'"type":"caps.raised"')


@dataclass(slots=True)
class Sent:
    """One attempt that its session's log names; ``ended``: with its end. ``usage`` None: nobody knows what it cost;
    ``nano`` is its cost as it was settled.

    ``ts`` is the record's time.
    """

    request: t.ModelRequest
    ts: str
    usage: t.Usage | None = None
    nano: int | None = None
    ended: bool = False


@dataclass(slots=True)
class Evidence:
    """All of one log. ``whole`` false: the log is damaged, so there may be more."""

    sid: str
    sent: dict[str, Sent] = field(default_factory=dict)
    raises: list[tuple[str, t.CapsRaised]] = field(default_factory=list)
    whole: bool = True
    _newest: dict[str, Sent] = field(default_factory=dict)

    def take(self, record: t.Record) -> None:
        """Follow one record; those that say nothing about money are skipped."""
        match record.body:
            case t.ModelRequest() as b:
                self._newest[b.request_id] = Sent(b, record.ts)
                self.sent[b.reservation] = self._newest[b.request_id]
            case t.ModelMessage() | t.ModelSummary() as b:
                if (sent := self._newest.pop(b.request_id, None)) is not None:
                    sent.usage = b.usage
                    sent.nano = None if b.price_source == UNSETTLED else b.cost_nano
                    sent.ended = True
            case t.ModelSettled() as b:
                if (settled := self.sent.get(b.reservation)) is not None:
                    settled.nano = b.cost_nano
            case t.ModelFailed() as b:
                if (sent := self._newest.get(b.request_id)) is not None and sent.request.attempt == b.attempt:
                    sent.usage = b.usage
                    sent.nano = None if b.price_source in ("", UNSETTLED) else b.cost_nano
                    sent.ended = True
            case t.CapsRaised() as b if b.cap:
                self.raises.append((record.ts, b))

    def settlement(self, held: Reserved) -> Settled | Unknown:
        """How a reservation ends whose brain may write no more."""
        sent = self.sent.get(held.reservation)
        if sent is None and self.whole:
            return Settled(reservation=held.reservation, nano=0, tokens=0, source=NEVER_SENT, sent=False)
        return _settled(held, sent)


def speaks_of_money(line: bytes) -> bool:
    """True when a raw log line may hold evidence: all others need not be decoded."""
    return any(kind in line for kind in _KINDS)


def _settled(held: Reserved, sent: Sent | None) -> Settled | Unknown:
    if sent is None or sent.usage is None:
        return Unknown(reservation=held.reservation)
    return settled(held, sent.usage, sent.nano)


def settled(held: Reserved, usage: Usage, nano: int | None = None) -> Settled:
    """How a reservation ends whose reply took this, for a cost of ``nano`` where one is on record, else at list price.

    Never for more than it holds: what an endpoint reports carries no sum over a cap.
    """
    found = prices.cost(held.model, usage)
    return Settled(
        reservation=held.reservation,
        nano=min(held.nano, found.nano if nano is None else nano),
        tokens=found.tokens if held.rebuilt else min(held.tokens, found.tokens),
        source=found.source,
        usage=usage,
    )


def raised(b: t.CapsRaised) -> Raised:
    """The ledger's record of a raise that a session's log decided."""
    return Raised(cap=b.cap, limit=b.limit, base=b.base, day=b.day, decision=b.decision_id)


Totals = tuple[int, int]
"""Nano-USD and tokens that were spent."""


@dataclass(frozen=True, slots=True)
class Books:
    """What a ledger holds that may lack something: its reservations, those still open, the decisions of its raises, its
    totals by (session, day).
    """

    known: set[str]
    open: Mapping[str, Reserved]
    decided: set[str]
    spent: Mapping[tuple[str, str], Totals]


def missing(books: Books, logs: Iterable[Evidence], least: Mapping[tuple[str, str], Totals]) -> list[LedgerRecord]:
    """The records that a ledger lacks, oldest first.

    ``least`` is what was spent by (session, day) once: what neither the ledger nor the logs explain (a session that was
    removed, a damaged log) is counted as one amount.
    """
    dated: list[tuple[str, list[LedgerRecord]]] = []
    sums = dict(books.spent)
    seen = set[str]()

    def count(held: Reserved, end: Settled | Unknown, ts: str, *, new: bool) -> None:
        cost = (end.nano, end.tokens) if isinstance(end, Settled) else (held.nano, held.tokens)
        before = sums.get((held.sid, held.day), (0, 0))
        sums[held.sid, held.day] = (before[0] + cost[0], before[1] + cost[1])
        dated.append((ts, [held, end] if new else [end]))

    for log in logs:
        seen.add(log.sid)
        for name, sent in log.sent.items():
            if name not in books.known:
                held = _rebuilt(log.sid, name, sent)
                count(held, _settled(held, sent), sent.ts, new=True)
            elif name in books.open and sent.ended:
                count(books.open[name], _settled(books.open[name], sent), sent.ts, new=False)
        dated += [(ts, [raised(b)]) for ts, b in log.raises if b.decision_id not in books.decided]
    for name, held in books.open.items():
        if held.sid not in seen:  # it was removed, and the anchor says what it had spent in the end
            rest = _lacking(held.sid, least, sums)
            known = any(sid == held.sid for sid, _ in least)
            part = Settled(
                reservation=name, nano=min(held.nano, rest[0]), tokens=min(held.tokens, rest[1]), source=ANCHORED
            )
            count(held, part if known else Unknown(reservation=name), held.day, new=False)
    for sid, day, nano, tokens in _unexplained(least, sums):
        name = f"{REBUILT}-{sid}-{day}"
        while name in books.known:
            name += "+"
        held = Reserved(
            reservation=name,
            sid=sid,
            request_id=name,
            attempt=1,
            nano=nano,
            tokens=tokens,
            day=day,
            source=REBUILT,
            rebuilt=True,
        )
        dated.append((day, [held, Settled(reservation=name, nano=nano, tokens=tokens, source=ANCHORED)]))
    return [record for _, records in sorted(dated, key=lambda d: d[0]) for record in records]


def _lacking(sid: str, least: Mapping[tuple[str, str], Totals], sums: Mapping[tuple[str, str], Totals]) -> list[int]:
    """Nano-USD and tokens that a session had spent once and that ``sums`` do not show."""
    return [
        max(0, sum(v[i] for k, v in least.items() if k[0] == sid) - sum(v[i] for k, v in sums.items() if k[0] == sid))
        for i in (0, 1)
    ]


def _unexplained(
    least: Mapping[tuple[str, str], Totals], sums: Mapping[tuple[str, str], Totals]
) -> Iterator[tuple[str, str, int, int]]:
    """(session, day, nano, tokens) that were spent once and that ``sums`` do not show; never more than a session lacks
    in all, because its log and the ledger may count a request at midnight for different days.
    """
    for sid in {sid for sid, _ in least}:
        rest = _lacking(sid, least, sums)
        for day in sorted(day for other, day in least if other == sid):
            then = least[sid, day]
            now = sums.get((sid, day), (0, 0))
            part = [min(rest[i], max(0, then[i] - now[i])) for i in (0, 1)]
            if any(part):
                rest = [rest[i] - part[i] for i in (0, 1)]
                yield sid, day, part[0], part[1]


def _rebuilt(sid: str, name: str, sent: Sent) -> Reserved:
    b = sent.request
    return Reserved(
        reservation=name,
        sid=sid,
        request_id=b.request_id,
        attempt=b.attempt,
        nano=b.reserved_nano,
        tokens=b.est_input + b.max_tokens,
        day=sent.ts[:10],
        model=b.model,
        source=REBUILT,
        rebuilt=True,
    )
