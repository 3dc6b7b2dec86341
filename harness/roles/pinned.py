"""The roles that a session began with, as its own log keeps them. Pure."""

from __future__ import annotations

from harness.domain.denied import NOTHING, Denied
from harness.events.calls.call_events import ToolProposed
from harness.events.session.role_events import PinnedRole
from harness.events.session.session_events import SessionIntent
from harness.projections.state.evaluation import JudgeStage
from harness.projections.state.session_state import SessionState
from harness.roles.catalog import shipped
from harness.roles.role import JUDGE, PARTS, WORKER, Role, parse
from harness.tools import registry


def pin(part: str, role: Role) -> PinnedRole:
    """A role as a session keeps it."""
    return PinnedRole(part, role.name, role.version, role.text)


def of(intent: SessionIntent | None, part: str) -> Role:
    """Who plays this part in a session; one that was launched before there were roles has those that ship."""
    for one in intent.roles if intent is not None else ():
        if one.part == part:
            return parse(one.name, one.text, f"the role {one.name} of the session")
    return shipped()[PARTS[part]]


def denied(intent: SessionIntent) -> Denied:
    """What a session may not read: all that any of its roles denies, for they share its worktree."""
    found = NOTHING
    for one in intent.roles:
        found |= parse(one.name, one.text, f"the role {one.name} of the session").denied
    return found


def refusal(s: SessionState, proposed: ToolProposed) -> str:
    """Why whoever proposed a call may not use that tool, or nothing; who thinks for the session has no say in it."""
    if proposed.own:
        return ""
    if s.contract.due:
        return "nobody works before the contract of this session is agreed"
    if proposed.by_judge and s.judging.stage is JudgeStage.STARTED:
        judge = of(s.intent, JUDGE)
        return "" if judge.may_use(registry.CHECK) else f"the role {judge.name} may have nothing run"
    if proposed.tool in registry.OWN:
        return f"{proposed.tool} is not a tool of yours; the harness runs it itself"
    role = of(s.intent, WORKER)
    return "" if role.may_use(proposed.tool) else f"{proposed.tool} is not a tool of the role {role.name}"
