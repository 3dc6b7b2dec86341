"""What the session itself says of going on, whoever thinks for it. Pure; an agent looks here before it thinks."""

from __future__ import annotations

from harness.agents.steps import Leave, Park, Say, Wait
from harness.domain.calls.approval_kind import Request
from harness.domain.calls.call_states import CallStage
from harness.domain.endpoints import ITEM_KINDS
from harness.domain.states import Desired, ParkedFor
from harness.domain.text.formatting import counted
from harness.plan import already, checks_before, gates, hooks, iterations
from harness.plan.due import due
from harness.projections.state.evaluation import JudgeStage
from harness.projections.state.session_state import SessionState

HUMAN_KINDS: dict[str, ParkedFor] = {Request.CAP: ParkedFor.CAP}
"""Why a session parks, by the kind of request that it waits for; ``approval`` for every other kind."""


def over(s: SessionState) -> Leave | None:
    """There is nothing to think about any more."""
    if s.ended is not None:
        return Leave("the session has ended")
    return Leave("stopped by the user") if s.desired == Desired.STOPPED else None


def held(s: SessionState) -> Park | Wait | None:
    """Nobody is to think now."""
    if s.desired != Desired.RUNNING:
        return Park(ParkedFor.PAUSED, s.desired_reason or "paused by you")
    return Wait("the worktree is being made") if s.intent is None or s.created is None else None


def news(s: SessionState) -> Say | None:
    """What the agent is to be told before it thinks on: jobs that ended while no call waited for them."""
    text, jobs = s.jobs.news()
    return Say(text, tuple(jobs)) if jobs else None


def outstanding(s: SessionState) -> Park | Wait | None:
    """What open calls, or else a request of the session's own, make the agent wait for."""
    if s.calls.open:
        return _calls(s)
    if s.unjudged or due(s):
        return Wait("the results of checks are being judged")
    if checks_before.due(s) is not None:
        return Wait("its checks run before the work begins")
    if already.due(s):
        return Wait("a person is asked about its plan")
    if gates.closed(s) is not None and not any(a.kind == Request.GATE for a in s.approvals.values()):
        return Wait("a person is asked about a gate of its plan")
    if s.course.owed:
        return Wait("a replan is being put on record")
    if s.rules.due:
        return Wait("the project's rules for what was edited are being read")
    waiting = next((a for a in s.approvals.values() if not a.call_id and a.kind not in ITEM_KINDS), None)
    if waiting is not None:
        return Park(HUMAN_KINDS.get(waiting.kind, ParkedFor.APPROVAL), waiting.title)
    if s.contract.due and s.contract.opened is None:
        return Wait("the brief for the contract is being laid out")
    if s.judging.stage is JudgeStage.REQUESTED and s.finish_up is None:
        return Wait("the case for the judge is being laid out")
    if hooks.due(s) is not None:
        return Wait("what runs after edits is under way")
    if iterations.due(s) is not None:
        return Wait("the next task of its plan is being prepared")
    return (
        None if s.ratchet.clear else Wait("a person is asked about protected files, or what he allowed is on its way")
    )


def _calls(s: SessionState) -> Park | Wait:
    asked = {a.call_id for a in s.approvals.values() if a.call_id}
    calls = s.calls.open.values()
    if all(c.call_id in asked and c.stage in (CallStage.ASKED, CallStage.IN_DOUBT) for c in calls):
        return Park(ParkedFor.APPROVAL, f"{counted(len(calls), 'call')} waiting for your decision")
    if all(c.call_id in s.jobs.waits and c.stage == CallStage.STARTED for c in calls):
        return Park(ParkedFor.JOB, s.jobs.words())
    held = next((a for a in s.approvals.values() if a.kind in (Request.CAP, Request.GATE)), None)
    if held is not None and all(c.stage in (CallStage.PROPOSED, CallStage.ASKED, CallStage.IN_DOUBT) for c in calls):
        return Park(
            HUMAN_KINDS.get(held.kind, ParkedFor.APPROVAL), held.title
        )  # nothing is judged meanwhile, so nothing runs
    return Wait("calls are running or being judged")
