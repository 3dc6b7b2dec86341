"""An open request as clients see it, by its session's log alone. Pure."""

from __future__ import annotations

from harness.projections.state.session_state import OpenApproval, SessionState
from harness.views.session_views import ApprovalView


def as_recorded(sid: str, s: SessionState, asked: OpenApproval) -> ApprovalView:
    """What its record says; what would run, and what that would change, is known to who has its call."""
    return ApprovalView(
        approval_id=asked.approval_id,
        sid=sid,
        session_name=s.name or sid,
        kind=asked.kind,
        title=asked.title,
        options=asked.options,
        risk=asked.risk,
        ts=asked.ts,
        seq=asked.seq,
        call_id=asked.call_id,
        action_hash=asked.action_hash,
        detail=asked.detail,
        deferred=asked.deferred,
        repo=s.intent.repo if s.intent else "",
        branch=s.intent.branch if s.intent else "",
    )
