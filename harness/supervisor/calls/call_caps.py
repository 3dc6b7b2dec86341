"""Caps on tool calls and wall time, and the request that any reached cap puts into the queue."""

from __future__ import annotations

from datetime import datetime

from harness.domain.calls.approval_kind import Request
from harness.domain.calls.cap_request import CapRequest
from harness.domain.cap import Cap, amount_of, named
from harness.domain.decision import Decision
from harness.events import types as t
from harness.projections.state.session_state import SessionState
from harness.supervisor.base import ids
from harness.supervisor.fleet.session import Session


def over_cap(session: Session, now: datetime) -> t.BudgetReached | None:
    """The cap on tool calls or on wall time that the next call would pass."""
    s = session.state
    if s.caps.tool_calls is not None and s.tool_calls >= s.caps.tool_calls:
        return t.BudgetReached(cap=Cap.SESSION_CALLS, used=s.tool_calls, limit=s.caps.tool_calls, need=1)
    if s.caps.wall_s is not None and s.first_ts:
        used = wall_used(s, now)
        if used >= s.caps.wall_s:
            return t.BudgetReached(cap=Cap.SESSION_WALL, used=used, limit=s.caps.wall_s)
    return None


def wall_used(s: SessionState, now: datetime) -> int:
    """Seconds that count against the cap on wall time: since the launch, time spent waiting for you included, what
    `SessionState.away_s` names not.
    """
    return max(0, int((now - datetime.fromisoformat(s.first_ts)).total_seconds()) - s.away_s) if s.first_ts else 0


async def ask_cap(session: Session, reached: t.BudgetReached) -> None:
    """Record that a cap is reached and put it in the queue, unless a cap is there already."""
    if any(a.kind == Request.CAP for a in session.state.approvals.values()):
        return
    said = CapRequest(Cap(reached.cap), reached.limit, reached.used, reached.need, reached.day)
    await session.append(
        reached,
        t.ApprovalRequested(
            approval_id=ids.approval_id(),
            kind=Request.CAP,
            title=in_words(said),
            options=[Decision.RAISE, Decision.FINISH, Decision.STOP],
            risk="medium",
            detail=said.detail(),
        ),
    )


def in_words(said: CapRequest) -> str:
    """One line that says how far a cap was reached."""
    cap = said.cap
    text = f"{named(cap)}: {amount_of(cap, said.used)} of {amount_of(cap, said.limit)}"
    return f"{text}, the next step needs up to {amount_of(cap, said.need)}" if said.need else text
