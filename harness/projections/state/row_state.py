"""Which state a session is in, and what is said of it: by its log, and by who is known to be alive. Pure."""

from __future__ import annotations

import msgspec

from harness.domain import problems
from harness.domain.states import Desired, ParkedFor, State
from harness.projections.state.session_state import OpenApproval, SessionState


class Liveness(msgspec.Struct, frozen=True):
    """What the supervisor knows of a session's processes; None = nobody looked (no supervisor)."""

    keeper: bool | None = None
    brain: bool | None = None
    doing: str = ""
    evidence: str = ""
    """What its agent is at in the reply that is on its way, and why that is to be believed."""
    call: str = ""
    """The newest call that runs, in words."""
    printed: str = ""
    """The newest line that a job of it printed."""


def first_request(s: SessionState) -> OpenApproval | None:
    """The oldest open request, a deferred one only when there is no other."""
    waiting = [a for a in s.approvals.values() if a.deferred is None] or list(s.approvals.values())
    return min(waiting, key=lambda a: a.seq, default=None)


def without_criterion(s: SessionState) -> bool:
    """True when no check, also of its plan, no plan to be written and no judge says what done means."""
    i = s.intent
    written = i is not None and bool(i.draft) and s.plan is None
    return i is not None and not s.checks and not written and i.judge is None


def state_of(s: SessionState, live: Liveness) -> tuple[str, str, str]:
    """(state, detail, evidence) of a session: the single place where a row's state is chosen."""
    at = f"record {s.seq} of its log, {s.last_event}"
    if s.ended is not None:
        return s.ended.outcome, "; ".join(filter(None, (s.merging.words(), s.pulling.words(), s.ended.reason))), at
    if s.desired == Desired.STOPPED:
        return State.STOPPED, "stopping" if live.brain else s.desired_reason or "stopped by you", at
    if s.intent is None:
        return State.UNKNOWN, "the log does not say what this session is", at
    first = first_request(s)
    if first is not None:
        waiting = sum(a.deferred is None for a in s.approvals.values()) or len(s.approvals)
        more = f" (+{waiting - 1})" if waiting > 1 else ""
        return (
            State.WAITING,
            f"{problems.request(first.kind)}: {first.title}{more}",
            f"open request {first.approval_id}",
        )
    if s.quarantined is not None:
        return (
            State.FAILED,
            f"{problems.part(s.quarantined.part)} failed {s.quarantined.restarts} times: {s.quarantined.reason}",
            at,
        )
    if live.keeper is False:
        return State.LOST, problems.SESSION["gone"].headline, at
    if s.desired == Desired.PAUSED:
        return State.PARKED, "pausing at the next turn" if live.brain else "paused by you", at
    if s.parked is not None and s.parked.why == ParkedFor.LIMITED:
        return State.LIMITED, problems.parked(ParkedFor.LIMITED).headline, at
    if s.created is None:
        return State.STARTING, "making its worktree", at
    if s.before.running:
        return State.RUNNING, f"runs its checks before the work: {s.before.running[0]}", at
    if s.doing:
        newest = max(s.doing.values(), key=lambda d: d.ts)
        if live.call:
            return State.RUNNING, live.call, at
        if live.doing and newest is s.doing.get("model"):
            return State.RUNNING, f"{newest.what}: {live.doing}", f"{at}; {live.evidence}"
        return State.RUNNING, newest.what, at
    if live.keeper is None:
        return State.UNKNOWN, "no supervisor has looked", at
    if live.brain:
        return State.RUNNING, "; job: ".join(filter(None, ("thinking", live.printed))), at
    if s.parked is not None and s.parked.why == ParkedFor.JOB:
        return State.RUNNING, " · ".join(filter(None, (s.jobs.words() or s.parked.detail, live.printed))), at
    if s.parked is not None:
        return State.PARKED, s.parked.detail or problems.parked(s.parked.why).headline, at
    return State.STARTING, "waking up", at


def words_of(s: SessionState, state: str) -> problems.Words | None:
    """What happens next and what can be done, for the states in which a session waits; None where nothing holds it
    up.
    """
    if state == State.RUNNING and s.before.running:
        return problems.CHECKS_FIRST
    if state == State.WAITING:
        first = first_request(s)
        return problems.requested(first.kind) if first is not None else None
    if state in (State.PARKED, State.LIMITED):
        return problems.parked(ParkedFor.PAUSED if s.desired == Desired.PAUSED or s.parked is None else s.parked.why)
    if state == State.FAILED:
        return problems.SESSION["set_aside"] if s.ended is None else problems.FAILED
    return problems.SESSION["gone"] if state == State.LOST else None
