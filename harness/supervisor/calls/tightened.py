"""What a session's role and repository make of the policy's word, which can only be harder. Pure."""

from __future__ import annotations

from harness.domain.actions.action import Action
from harness.events.calls.call_events import ToolProposed
from harness.policy import repository
from harness.policy.decide import Verdict, decide, tighten
from harness.policy.policy_file import Policy
from harness.projections.state.session_state import SessionState
from harness.roles import pinned
from harness.roles.role import JUDGE, WORKER


def of_session(s: SessionState, action: Action, policy: Policy) -> Verdict:
    """The verdict on a call of the session's agent or of its judge, before its plan has a say; on what the harness runs
    on its own account, the policy's alone.
    """
    call = ToolProposed(call_id=action.call, tool=action.tool, ref=action.ref)
    verdict = decide(action, policy)
    if call.own:
        return verdict
    role = pinned.of(s.intent, JUDGE if call.by_judge else WORKER)
    found = tighten(verdict, action, role.rules, f"the role {role.name}")
    return tighten(found, action, repository.tightening(s.repository_policy).rules, repository.WHOSE)
