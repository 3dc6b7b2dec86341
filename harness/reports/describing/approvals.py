"""One line for each record of: requests to a person and what became of them."""

from __future__ import annotations

from harness.domain.cap import amount_of
from harness.domain.decision import PERMITS, Decision
from harness.domain.text.formatting import decided, local, who
from harness.domain.text.line import first
from harness.events import types as t
from harness.reports.describing import grant_words
from harness.reports.describing.line import Describers, Line

DESCRIBERS = Describers()
_on = DESCRIBERS.on


@_on(t.ApprovalRequested)
def _asked(b: t.ApprovalRequested) -> Line:
    return Line(
        "asks you",
        f"{b.approval_id} {b.kind}: {first(b.title)} · risk {b.risk}",
        "bad" if b.risk in ("high", "critical") else "warn",
    )


@_on(t.ApprovalDecided)
def _decided(b: t.ApprovalDecided) -> Line:
    text = f": {first(b.message)}" if b.message else ""
    return Line(
        "decided",
        f"{b.approval_id} {chosen(b, done=True)} by {who(b.by.client)}{text}",
        "good" if b.decision in PERMITS else "info",
    )


def chosen(b: t.ApprovalDecided, *, done: bool = False) -> str:
    """What was decided, a raise in the unit of its cap; a raise whose record names no cap is given no number, for
    nobody knows what it counts. ``done``: as something that has been done.
    """
    how = decided(b.decision) if done else b.decision.replace("_", " ")
    if b.value is None:
        return how
    if b.decision != Decision.RAISE:
        return f"{how} {b.value}"
    return f"{how} {first(b.cap)} to {amount_of(b.cap, b.value)}" if b.cap else how


@_on(t.ApprovalStale)
def _stale(b: t.ApprovalStale) -> Line:
    return Line("stale", f"{b.approval_id} what was approved has changed: {'; '.join(b.difference)}", "warn")


@_on(t.ApprovalWithdrawn)
def _withdrawn(b: t.ApprovalWithdrawn) -> Line:
    return Line("withdrawn", f"{b.approval_id}: {first(b.why)}", "dim")


@_on(t.ApprovalDeferred)
def _deferred(b: t.ApprovalDeferred) -> Line:
    return Line("deferred", b.approval_id + (f" until {local(b.until)}" if b.until else ""), "dim")


@_on(t.GrantMade)
def _grant_made(b: t.GrantMade) -> Line:
    return Line("rule", first(grant_words.made(b)), "info")


@_on(t.GrantUsed)
def _grant_used(b: t.GrantUsed) -> Line:
    return Line("rule", grant_words.used(b), "info")
