"""What the supervisor must remember of a log beyond the fold: the records of open calls and the order of a few events.

Pure.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from harness.domain.actions.action import canonical
from harness.domain.calls.approval_kind import Request
from harness.domain.calls.cap_request import CapRequest
from harness.domain.calls.card_facts import RunFile, notes_of
from harness.domain.decision import Decision
from harness.domain.states import Desired
from harness.domain.unsnapshotted import left_out
from harness.events import types as t
from harness.projections.state.session_state import OpenApproval, SessionState
from harness.tools import registry, summary

_PASSED = 16


@dataclass(slots=True)
class OpenCall:
    """The records of one call that has not ended."""

    proposed: t.ToolProposed
    judged: t.ToolJudged | None = None
    decided: t.ApprovalDecided | None = None
    doubt: t.ToolInDoubt | None = None


def signature(p: t.ToolProposed) -> str:
    """Equal for two proposals of the same tool with the same input, whatever the model claims about them."""
    if p.input_blob is not None:
        return f"{p.tool}:{p.input_blob.sha}"
    asked = {k: v for k, v in (p.input or {}).items() if k != "why"}
    try:
        return f"{p.tool}:{hashlib.sha256(canonical(asked)).hexdigest()}"
    except ValueError:
        return f"{p.tool}:{hashlib.sha256(repr(sorted(asked.items())).encode('utf-8', 'replace')).hexdigest()}"


_DONE = (
    t.ModelMessage,
    t.ModelSummary,
    t.ToolEnded,
    t.CheckVerdict,
    t.EvaluationStarted,
    t.EvaluationEnded,
    t.PlanFlipped,
    t.IterationEnded,
)


@dataclass(slots=True)
class Track:
    """Advanced with each record, before the fold. ``ran_command`` is reset by its reader."""

    calls: dict[str, OpenCall] = field(default_factory=dict)
    denials: dict[str, int] = field(default_factory=dict)
    denied_why: dict[str, str] = field(default_factory=dict)
    changed: dict[str, list[str]] = field(default_factory=dict)
    """By call: how the world differs from what a person was shown before."""
    shown_runs: dict[str, list[RunFile]] = field(default_factory=dict)
    """By call: the files that it would run, as the newest request about it showed them."""
    asked_seq: dict[str, int] = field(default_factory=dict)
    """By kind of request: where it was newest asked, or was open as the session parked (one question of a kind is
    answered once, however often its park is repeated).
    """
    parked_seq: int = -1
    resumed_seq: int = -1
    worked_gen: int = 0
    """The newest lease under which a brain did something that stays: a reply, a call, a park, an end."""
    done_seq: int = -1
    """The newest record of something that is done and need not be done again, whoever dies then."""
    request_gen: int = 0
    """The lease under which the newest model request was sent."""
    doubt_asked: dict[str, str] = field(default_factory=dict)
    has_goal: bool = False
    ran_command: bool = False
    left_out: tuple[str, ...] | None = None
    """What the newest kept state of the worktree does not hold, as `left_out` says it; None before the first."""
    raises: dict[str, t.CapsRaised] = field(default_factory=dict)
    """By cap: the newest raise of a cap above the session that was decided here."""
    passed: dict[str, OpenApproval] = field(default_factory=dict)
    """Requests about caps above the session that were withdrawn: an answer may be on its way."""

    def note(self, s: SessionState, r: t.Record) -> None:
        """Take in one record; ``s`` is the state before it."""
        b = r.body
        if isinstance(b, (t.ModelMessage, t.ModelSummary, t.ToolProposed, t.SessionParked, t.SessionEnded)):
            self.worked_gen = max(self.worked_gen, r.gen)
        if isinstance(b, _DONE):
            self.done_seq = r.seq
        match b:
            case (
                t.ToolProposed() | t.ToolJudged() | t.ToolStarted() | t.ToolEnded() | t.ToolInDoubt() | t.ToolResolved()
            ):
                self._call(b)
            case t.ApprovalRequested():
                self._asked(r, b)
            case t.ApprovalDecided():
                self._decided(s, b)
            case t.ApprovalStale():
                self.changed[b.call_id] = list(b.difference)
            case t.ApprovalWithdrawn():
                self._withdrawn(s, b)
            case t.ModelRequest():
                self.request_gen = r.gen
            case t.CapsRaised() if b.cap:
                self.raises[b.cap] = b
            case t.SessionParked():
                self.parked_seq = r.seq
                self.asked_seq.update((a.kind, r.seq) for a in s.approvals.values())
            case t.SessionContinued():
                self.resumed_seq = r.seq
            case t.SessionDesired() if b.state == Desired.RUNNING:
                self.resumed_seq = r.seq
            case t.UserMessage():
                self.has_goal = self.has_goal or b.origin == "goal"

    def _call(
        self, b: t.ToolProposed | t.ToolJudged | t.ToolStarted | t.ToolEnded | t.ToolInDoubt | t.ToolResolved
    ) -> None:
        call = self.calls.get(b.call_id)
        match b:
            case t.ToolProposed():
                self.calls[b.call_id] = OpenCall(b)
            case t.ToolJudged() if call is not None:
                call.judged = b
                call.decided = None
            case t.ToolStarted() if b.snapshot:
                self.left_out = left_out(b.left_out, b.left_out_names)
            case t.ToolEnded():
                self.ran_command = self.ran_command or (call is not None and registry.runs(call.proposed.tool))
                self._gone(b.call_id)
            case t.ToolInDoubt() if call is not None:
                call.doubt = b
            case t.ToolResolved() if b.resolution != "confirmed_not_done":
                self._gone(b.call_id)
            case t.ToolResolved():
                if call is not None:
                    call.judged = None
                    call.decided = None
                    call.doubt = None
                self.doubt_asked.pop(b.call_id, None)

    def _asked(self, r: t.Record, b: t.ApprovalRequested) -> None:
        self.asked_seq[b.kind] = r.seq
        if b.call_id and (notes := notes_of(b.detail)) is not None and notes.runs:
            self.shown_runs[b.call_id] = notes.runs
        if b.kind == Request.IN_DOUBT:
            self.doubt_asked[b.call_id] = b.approval_id

    def _withdrawn(self, s: SessionState, b: t.ApprovalWithdrawn) -> None:
        asked = s.approvals.get(b.approval_id)
        if asked is None or asked.kind != Request.CAP:
            return
        if (said := CapRequest.of(asked.detail)) is not None and said.cap.of_session:
            return
        self.passed[b.approval_id] = asked
        while len(self.passed) > _PASSED:
            del self.passed[next(iter(self.passed))]

    def at_work(self, s: SessionState) -> str:
        """The newest call that runs, in words; empty when none does."""
        running = [name for name in s.doing if name in self.calls]
        if not running:
            return ""
        proposed = self.calls[max(running, key=lambda name: s.doing[name].ts)].proposed
        return summary.what(proposed.tool, proposed.input)

    def _gone(self, call_id: str) -> None:
        self.calls.pop(call_id, None)
        self.changed.pop(call_id, None)
        self.shown_runs.pop(call_id, None)
        self.doubt_asked.pop(call_id, None)

    def _decided(self, s: SessionState, b: t.ApprovalDecided) -> None:
        asked = s.approvals.get(b.approval_id)
        call = self.calls.get(b.call_id or (asked.call_id if asked else ""))
        if call is None or asked is None:
            return
        call.decided = b
        if asked.kind != Request.TOOL:
            return
        name = signature(call.proposed)
        if b.decision == Decision.DENY:
            self.denials[name] = self.denials.get(name, 0) + 1
            self.denied_why[name] = b.message
        else:
            self.denials.pop(name, None)
