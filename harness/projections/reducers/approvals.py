"""What these records change in the state: requests to a person and what became of them."""

from __future__ import annotations

from harness.events import types as t
from harness.events.calls.grant_events import grant_of
from harness.projections.reducers.handlers import Handlers
from harness.projections.state.session_state import OpenApproval, SessionState

HANDLERS = Handlers()
_on = HANDLERS.on


@_on(t.ApprovalRequested)
def _asked(s: SessionState, r: t.Record, b: t.ApprovalRequested) -> None:
    s.approvals[b.approval_id] = OpenApproval(
        b.approval_id, b.kind, b.title, b.options, b.call_id, b.action_hash, b.risk, r.ts, r.seq, b.detail
    )


@_on(t.ApprovalDecided)
def _decided(s: SessionState, r: t.Record, b: t.ApprovalDecided) -> None:
    if (asked := s.approvals.pop(b.approval_id, None)) is not None and not grant_of(b.by.client):
        s.approved = s.approved.after(asked.detail, b.decision)
    s.decisions += 1


@_on(t.ApprovalStale)
def _stale(s: SessionState, r: t.Record, b: t.ApprovalStale) -> None:
    s.approvals.pop(b.approval_id, None)


@_on(t.ApprovalWithdrawn)
def _withdrawn(s: SessionState, r: t.Record, b: t.ApprovalWithdrawn) -> None:
    s.approvals.pop(b.approval_id, None)


@_on(t.ApprovalDeferred)
def _deferred(s: SessionState, r: t.Record, b: t.ApprovalDeferred) -> None:
    if (a := s.approvals.get(b.approval_id)) is not None:
        a.deferred = b.until
