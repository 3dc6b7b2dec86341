"""What became of each request to a person, step by step, from the log alone. Pure.

A step is a record: the request that was asked, the decision, what it set off, what came of that, and the request to
the model that told the agent. Texts are raw: whoever shows them passes `untrusted.to_display`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from harness.domain.decision import Decision
from harness.domain.text.formatting import by_whom, decided
from harness.events import types as t
from harness.reports.describe import describe

ASKED = "asked"
SHOWN = "shown"
"""The decision names the card that it was made on; it is that record."""
DECIDED = "decided"
DEFERRED = "deferred"
TAKEN = "taken"
"""What it allowed began, or what it ordered is on record."""
EFFECT = "effect"
"""The call that it is about is over; of another request: the model replied again, or the session ended."""
DELIVERED = "delivered"
"""The first request to the model that carries it."""
STALE = "stale"
WITHDRAWN = "withdrawn"
LOST = "lost"
"""The session ended, or the call came to be in doubt, before anything came of it."""
OPEN = "open"
_OUTCOMES = {EFFECT: "effect seen", TAKEN: "under way", DECIDED: "nothing followed yet"}


class Step(msgspec.Struct, frozen=True):
    """One step of what became of a request, at record ``seq``."""

    stage: str
    seq: int
    ts: str
    text: str = ""


class Receipt(msgspec.Struct, frozen=True):
    """One request and what became of it. ``outcome``: open, decided (nothing followed yet), taken, effect, stale,
    withdrawn, lost.
    """

    approval_id: str
    kind: str
    title: str
    risk: str
    call_id: str
    outcome: str
    decision: str
    by: str
    steps: tuple[Step, ...]

    @property
    def newest(self) -> str:
        """When something became of it last."""
        return self.steps[-1].ts

    @property
    def rank(self) -> tuple[str, str]:
        """Every list has the highest first: of what one record told of at once, what was asked last."""
        return self.newest, self.steps[0].ts


class Receipts(msgspec.Struct, frozen=True, kw_only=True):
    """The reply of ``receipts``: those of one session, oldest first."""

    sid: str
    name: str
    receipts: list[Receipt]


@dataclass(slots=True)
class _Request:
    asked: t.ApprovalRequested
    steps: list[Step]
    decision: t.ApprovalDecided | None = None

    def has(self, stage: str) -> bool:
        return any(step.stage == stage for step in self.steps)

    def step(self, stage: str, r: t.Record, text: str = "") -> None:
        """Keep the first of each stage; it may be deferred more than once."""
        if stage == DEFERRED or not self.has(stage):
            self.steps.append(Step(stage, r.seq, r.ts, text or describe(r).summary))


@dataclass(slots=True)
class History:
    """All requests of one log so far; `take` goes on with the next record."""

    seq: int = -1
    requests: dict[str, _Request] = field(default_factory=dict)
    waiting: dict[str, None] = field(default_factory=dict)
    """Requests to which something can still happen, in the order they were asked."""
    batch: str = ""
    """The request whose decision was the record before, or led to it."""

    def take(self, r: t.Record) -> None:
        """Go on with the next record."""
        b = r.body
        now = self.batch
        self.batch = ""
        handler = _HANDLERS.get(type(b))
        if handler is not None:
            handler(self, r, b)
        if now and isinstance(b, _ORDERED):
            self._carried_out(self.requests[now], r)
        if isinstance(b, t.SessionEnded):
            self._over(r)
        self.seq = r.seq

    def live(self) -> list[_Request]:
        """Requests to which something can still happen."""
        return [self.requests[name] for name in self.waiting]

    def of_call(self, call_id: str) -> list[_Request]:
        """Those of them that are about a call."""
        return [one for one in self.live() if call_id and one.asked.call_id == call_id]

    def close(self, one: _Request) -> None:
        """Nothing more happens to it."""
        self.waiting.pop(one.asked.approval_id, None)

    def _carried_out(self, one: _Request, r: t.Record) -> None:
        """What a decision ordered is on record; an end is ordered by one word alone."""
        ends = isinstance(r.body, t.SessionEnded)
        if ends and (one.decision is None or one.decision.decision != Decision.DONE):
            return
        self.batch = one.asked.approval_id
        one.step(TAKEN, r)
        if ends:
            one.step(EFFECT, r)

    def _over(self, r: t.Record) -> None:
        for one in self.live():
            if one.decision is not None and (not one.asked.call_id or one.decision.decision == Decision.STOP):
                one.step(EFFECT, r)
            elif not one.has(EFFECT):
                one.step(LOST, r)
                if one.decision is None:
                    continue  # it may still be withdrawn, which says more
            self.close(one)


def receipts(h: History) -> list[Receipt]:
    """One for each request, oldest first."""
    return [_receipt(one) for one in h.requests.values()]


def words(receipt: Receipt) -> str:
    """Who decided what, and what became of it, in the words of a person."""
    outcome = _OUTCOMES.get(receipt.outcome, receipt.outcome)
    return f"{decided(receipt.decision)}{by_whom(receipt.by)} · {outcome}" if receipt.decision else outcome


def _receipt(one: _Request) -> Receipt:
    stages = [step.stage for step in one.steps]
    outcome = next((stage for stage in (WITHDRAWN, STALE, LOST, EFFECT, TAKEN, DECIDED) if stage in stages), OPEN)
    d = one.decision
    return Receipt(
        approval_id=one.asked.approval_id,
        kind=one.asked.kind,
        title=one.asked.title,
        risk=one.asked.risk,
        call_id=one.asked.call_id,
        outcome=outcome,
        decision=d.decision if d is not None else "",
        by=d.by.client if d is not None else "",
        steps=tuple(one.steps),
    )


# -- one record after the other ------------------------------------------------------------------------


def _asked(h: History, r: t.Record, b: t.ApprovalRequested) -> None:
    h.requests[b.approval_id] = _Request(b, [Step(ASKED, r.seq, r.ts, b.title)])
    h.waiting[b.approval_id] = None


def _decided(h: History, r: t.Record, b: t.ApprovalDecided) -> None:
    one = h.requests.get(b.approval_id)
    if one is None or one.decision is not None or b.approval_id not in h.waiting:
        return
    one.decision = b
    if b.shown_hash:
        one.step(SHOWN, r, f"card {b.shown_hash[:12]}")
    one.step(DECIDED, r)
    h.batch = b.approval_id


def _deferred(h: History, r: t.Record, b: t.ApprovalDeferred) -> None:
    if b.approval_id in h.waiting:
        h.requests[b.approval_id].step(DEFERRED, r)


def _closed(h: History, r: t.Record, b: t.ApprovalStale | t.ApprovalWithdrawn) -> None:
    one = h.requests.get(b.approval_id)
    if one is None or b.approval_id not in h.waiting:
        return
    one.steps = [step for step in one.steps if step.stage != LOST]
    one.step(STALE if isinstance(b, t.ApprovalStale) else WITHDRAWN, r)
    h.close(one)


def _started(h: History, r: t.Record, b: t.ToolStarted) -> None:
    for one in h.of_call(b.call_id):
        if one.decision is not None:
            one.step(TAKEN, r)


def _ended(h: History, r: t.Record, b: t.ToolEnded) -> None:
    for one in h.of_call(b.call_id):
        if one.decision is not None:
            one.step(EFFECT, r)


def _in_doubt(h: History, r: t.Record, b: t.ToolInDoubt) -> None:
    for one in h.of_call(b.call_id):
        if one.decision is not None:
            one.step(LOST, r)
            h.close(one)


def _resolved(h: History, r: t.Record, b: t.ToolResolved) -> None:
    for one in h.of_call(b.call_id):
        if one.decision is not None:
            one.step(TAKEN, r)


def _requested(h: History, r: t.Record, b: t.ModelRequest) -> None:
    if b.purpose:
        return
    for one in h.live():
        if one.decision is None:
            continue
        if not one.asked.call_id:
            one.step(DELIVERED, r)
        elif one.asked.call_id in b.delivers:
            one.step(DELIVERED, r)
            h.close(one)


def _replied(h: History, r: t.Record, b: t.ModelMessage) -> None:
    if b.purpose:
        return
    for one in h.live():
        if one.has(DELIVERED):
            one.step(EFFECT, r)
            h.close(one)


_ORDERED = (
    t.CapsRaised,
    t.BillsBelieved,
    t.FinishUp,
    t.SessionDesired,
    t.SessionEnded,
    t.RatchetAnswered,
    t.GateOpened,
    t.UserMessage,
    t.ToolResolved,
)
"""What a decision orders, on record in the same breath."""
_HANDLERS: Mapping[type[t.Body], Callable[[History, t.Record, Any], None]] = {
    t.ApprovalRequested: _asked,
    t.ApprovalDecided: _decided,
    t.ApprovalDeferred: _deferred,
    t.ApprovalStale: _closed,
    t.ApprovalWithdrawn: _closed,
    t.ToolStarted: _started,
    t.ToolEnded: _ended,
    t.ToolInDoubt: _in_doubt,
    t.ToolResolved: _resolved,
    t.ModelRequest: _requested,
    t.ModelMessage: _replied,
}
