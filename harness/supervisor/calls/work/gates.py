"""The gates of a plan's phases: held by the supervisor, whatever the agent wants, until a person says otherwise."""

from __future__ import annotations

import hashlib

from harness.domain.actions.action import canonical
from harness.domain.calls.approval_kind import Request
from harness.domain.decision import Decision
from harness.domain.states import Desired
from harness.domain.text.formatting import usd
from harness.events import types as t
from harness.plan import gates
from harness.plan.due import due
from harness.projections.state.session_state import OpenApproval
from harness.supervisor.base import ids
from harness.supervisor.fleet.session import Session

OPTIONS: list[str] = [Decision.ALLOW, Decision.DENY, Decision.STOP]
"""``deny``: the session is paused, and asked again when it is resumed."""


async def step(session: Session) -> None:
    """Ask where a gate holds, or put on record that a phase begins. Raises OpError, LinkLost."""
    s = session.state
    plan = s.plan
    if plan is None or s.terminal or s.desired != Desired.RUNNING or s.unjudged or due(s):
        return
    held = gates.closed(s)
    asked = next((a for a in s.approvals.values() if a.kind == Request.GATE), None)
    if asked is not None and (held is None or asked.detail.get("name") != held.name):
        await session.append(t.ApprovalWithdrawn(approval_id=asked.approval_id, why="another phase comes first now"))
    elif held is not None and asked is None:
        await _ask(session, held)
    elif held is None and (begins := gates.beginning(s)) is not None:
        await session.append(t.PhaseBegun(phase=begins.name))


async def _ask(session: Session, phase: t.PlanPhase) -> None:
    plan = session.state.plan
    if plan is None:
        return
    detail: dict[str, object] = {"name": phase.name, **gates.detail(plan, phase, usd(session.state.spent_nano))}
    await session.append(
        t.ApprovalRequested(
            approval_id=ids.approval_id(),
            kind=Request.GATE,
            title=gates.title(phase, phase.name in plan.work.begun),
            options=OPTIONS,
            action_hash=hashlib.sha256(canonical({"gate": detail})).hexdigest(),
            risk="high",
            detail=detail,
        )
    )


def decided(asked: OpenApproval, decision: str, message: str, by: t.By) -> list[t.Body]:
    """What follows from a person's word on a gate."""
    if decision == Decision.ALLOW:
        return [t.GateOpened(phase=str(asked.detail.get("name", "")), message=message, by=by)]
    why = f"you did not let it begin: {asked.detail.get('phase', '')}"
    told = [t.UserMessage(text=message, origin="human", by=by)] if message.strip() else []
    return [*told, t.SessionDesired(state="paused", reason=why[:300], by=by)]
