"""The one fold: events → session state. Recovery, index, TUI, CLI, briefing and metrics all read a session through it.

`advance` is total: a record it does not understand changes only the position. It never fails on a log that verified.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from harness.events import checkpoints, layers, ratchet, rules
from harness.events import types as t
from harness.events.calls import OpenCalls
from harness.events.course import Course
from harness.events.course_events import ASSUMPTION
from harness.events.draft import Draft
from harness.events.evaluation import Judging
from harness.events.evaluation_events import JUDGES
from harness.events.hooks import Hooks
from harness.events.iterations import Iterations
from harness.events.jobs import Jobs
from harness.events.plan_state import Work
from harness.events.remembered import Remembered

NOT_RUN = ("denied", "refused", "cancelled")
"""How a call ends that never ran."""


@dataclass(slots=True)
class OpenApproval:
    """A request nobody has decided yet."""

    approval_id: str
    kind: str
    title: str
    options: list[str]
    call_id: str
    action_hash: str
    risk: str
    ts: str
    seq: int
    detail: dict[str, Any]
    deferred: str | None = None


@dataclass(slots=True)
class Running:
    """What is going on right now, in words a row can show, and since when."""

    what: str
    ts: str


@dataclass(slots=True)
class Context:
    """What its requests show of the log: ``tokens`` as the newest reply, or the newest change, left it; how often old
    turns were cleared, how often it began anew, with a summary or without; ``layers`` of the newest request that was
    answered, as its reply measured them; ``working``: the tokens that requests are kept within.
    """

    tokens: int = 0
    layers: dict[str, int] = field(default_factory=dict)
    working: int = 0
    clearings: int = 0
    resets: int = 0
    compactions: int = 0
    wanted: bool = False
    """A person wants it compacted before the next turn."""


@dataclass(slots=True)
class SessionState:
    """Everything the log says about a session. Built only by `advance`."""

    seq: int = -1
    first_ts: str = ""
    last_ts: str = ""
    last_event: str = ""
    intent: t.SessionIntent | None = None
    created: t.SessionCreated | None = None
    name: str = ""
    caps: t.Caps = field(default_factory=t.Caps)
    desired: str = "running"
    desired_reason: str = ""
    parked: t.SessionParked | None = None
    parked_ts: str = ""
    ended: t.SessionEnded | None = None
    ended_ts: str = ""
    away_s: int = 0
    """Seconds that count against no cap on wall time: ended before it was continued, waiting for its endpoint, the
    machine asleep or off.
    """
    undone_since: bool = False
    """Something was undone after its end: its agent has not been told."""
    max_rounds: int = 5
    quarantined: t.Quarantined | None = None
    lease: t.LeaseGranted | None = None
    lease_gen: int = 0
    keeper: t.KeeperStarted | None = None
    calls: OpenCalls = field(default_factory=OpenCalls)
    approvals: dict[str, OpenApproval] = field(default_factory=dict)
    request: t.ModelRequest | None = None
    doing: dict[str, Running] = field(default_factory=dict)
    spent_nano: int = 0
    usage: t.Usage = field(default_factory=t.Usage)
    requests: int = 0
    context: Context = field(default_factory=Context)
    tool_calls: int = 0
    decisions: int = 0
    failures_in_row: int = 0
    last_failure: t.ModelFailed | None = None
    budget: t.BudgetReached | None = None
    finish_up: t.FinishUp | None = None
    checks: dict[str, int | None] = field(default_factory=dict)
    check_calls: dict[str, ratchet.Running] = field(default_factory=dict)
    unjudged: dict[str, ratchet.Running] = field(default_factory=dict)
    """Checks that ran and whose results the supervisor has to judge, by call."""
    first_counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By check, how many tests its first run ran and excused."""
    plan: ratchet.Plan | None = None
    hooks: Hooks = field(default_factory=Hooks)
    iterations: Iterations = field(default_factory=Iterations)
    rules: rules.Rules = field(default_factory=rules.Rules)
    draft: Draft = field(default_factory=Draft)
    course: Course = field(default_factory=Course)
    ratchet: ratchet.Ratchet = field(default_factory=ratchet.Ratchet)
    judging: Judging = field(default_factory=Judging)
    verdicts: dict[str, t.CheckVerdict] = field(default_factory=dict)
    """By check, the newest one on the files as they are."""
    checkpoints: checkpoints.Checkpoints = field(default_factory=checkpoints.Checkpoints)
    jobs: Jobs = field(default_factory=Jobs)
    memory: Remembered = field(default_factory=Remembered)
    recovered: int = 0
    last_undo: str = ""
    unknown: int = 0

    @property
    def terminal(self) -> bool:
        return self.ended is not None

    @property
    def checks_passed(self) -> int:
        return sum(1 for code in self.checks.values() if code == 0)


def advance(s: SessionState, r: t.Record) -> None:
    """Apply one record in place."""
    s.seq = r.seq
    s.last_event = r.type
    body = r.body
    kind = r.type
    if kind.startswith(("tool.", "approval.")) and not isinstance(body, t.Unknown):
        s.calls.apply(kind, msgspec.structs.asdict(body))
    handler = _HANDLERS.get(type(body))
    if handler is not None:
        handler(s, r, body)
    s.draft.take(r.seq, body)
    s.course.take(r.seq, body, s.plan is not None)
    s.checkpoints = checkpoints.after(s.checkpoints, r)
    if isinstance(body, t.Unknown):
        s.unknown += 1
    s.first_ts = s.first_ts or r.ts
    s.last_ts = r.ts


def become(s: SessionState, other: SessionState) -> None:
    """Make the one that is held elsewhere equal to another."""
    for part in fields(SessionState):
        setattr(s, part.name, getattr(other, part.name))


def fold(records: Iterable[t.Record], start: SessionState | None = None) -> SessionState:
    """State after all records; `start` continues an earlier fold."""
    state = start or SessionState()
    for record in records:
        advance(state, record)
    return state


B = TypeVar("B", bound=t.Body)
_HANDLERS: dict[type[t.Body], Callable[[SessionState, t.Record, Any], None]] = {}


def _on(
    cls: type[B],
) -> Callable[[Callable[[SessionState, t.Record, B], None]], Callable[[SessionState, t.Record, B], None]]:
    def register(fn: Callable[[SessionState, t.Record, B], None]) -> Callable[[SessionState, t.Record, B], None]:
        _HANDLERS[cls] = fn
        return fn

    return register


@_on(t.SessionIntent)
def _intent(s: SessionState, r: t.Record, b: t.SessionIntent) -> None:
    s.intent = b
    s.name = b.name
    s.caps = b.caps
    s.checks = dict.fromkeys(b.checks)
    s.max_rounds = b.max_rounds
    s.judging.wanted = b.judge


@_on(t.SessionCreated)
def _created(s: SessionState, r: t.Record, b: t.SessionCreated) -> None:
    s.created = b


@_on(t.SessionDesired)
def _desired(s: SessionState, r: t.Record, b: t.SessionDesired) -> None:
    if s.desired == "stopped" and b.state != "stopped":
        return  # a stop is final, whoever writes what after it
    s.desired = b.state
    s.desired_reason = b.reason
    if b.state == "running":
        s.quarantined = None
        s.failures_in_row = 0


@_on(t.SessionParked)
def _parked(s: SessionState, r: t.Record, b: t.SessionParked) -> None:
    s.parked = b
    s.parked_ts = r.ts
    s.jobs.heard = False
    s.doing.pop("model", None)


@_on(t.SessionEnded)
def _ended(s: SessionState, r: t.Record, b: t.SessionEnded) -> None:
    _waited(s, r.ts)
    s.ended = b
    if b.verified and s.judging.wanted is not None and not s.judging.satisfied:
        s.ended = msgspec.structs.replace(b, verified=False, reason=f"{b.reason}; its judge never was satisfied")
    s.ended_ts = r.ts
    s.doing.clear()
    s.unjudged.clear()


@_on(t.SessionContinued)
def _continued(s: SessionState, r: t.Record, b: t.SessionContinued) -> None:
    s.away_s += _seconds(s.ended_ts, r.ts)
    s.ended = None
    s.ended_ts = ""
    s.undone_since = False
    s.desired = "running"
    s.desired_reason = ""
    s.parked = s.quarantined = s.last_failure = s.budget = s.finish_up = None
    s.failures_in_row = 0
    s.max_rounds = b.rounds or s.max_rounds
    s.iterations = s.iterations.continued()
    s.caps = s.caps if b.caps is None else b.caps
    s.checks = dict.fromkeys(s.checks if b.checks is None else b.checks)
    s.judging.instructed()


def _seconds(since: str, until: str) -> int:
    """Whole seconds between two times of the log, never negative; 0 when one of them is none."""
    try:
        return max(0, int((datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds()))
    except (ValueError, TypeError):
        return 0


@_on(t.Quarantined)
def _quarantined(s: SessionState, r: t.Record, b: t.Quarantined) -> None:
    s.quarantined = b


@_on(t.LeaseGranted)
def _lease(s: SessionState, r: t.Record, b: t.LeaseGranted) -> None:
    _waited(s, r.ts)
    s.lease = b
    s.lease_gen = b.gen
    s.parked = None


@_on(t.TimePassed)
def _time_passed(s: SessionState, r: t.Record, b: t.TimePassed) -> None:
    if not _standing_by(s):
        s.away_s += int(b.seconds)


def _standing_by(s: SessionState) -> bool:
    """It ended, or waits for its endpoint: the whole of that time is left out when it is over."""
    return s.ended is not None or (s.parked is not None and s.parked.why == "limited")


def _waited(s: SessionState, ts: str) -> None:
    """Leave out the time that it stood by for its endpoint."""
    if s.ended is None and _standing_by(s):
        s.away_s += _seconds(s.parked_ts, ts)


@_on(t.LeaseEnded)
def _lease_ended(s: SessionState, r: t.Record, b: t.LeaseEnded) -> None:
    if s.lease is not None and s.lease.gen == b.gen:
        s.lease = None
    s.doing.pop("model", None)


@_on(t.KeeperStarted)
def _keeper(s: SessionState, r: t.Record, b: t.KeeperStarted) -> None:
    if s.keeper is not None and s.keeper.boot != b.boot and not _standing_by(s):
        s.away_s += _seconds(s.last_ts, r.ts)  # the machine was off since the record before
    s.keeper = b
    s.recovered += b.recovered


@_on(t.EvaluationRequested)
def _to_judge(s: SessionState, r: t.Record, b: t.EvaluationRequested) -> None:
    s.judging.requested(r.seq, b)


@_on(t.EvaluationStarted)
def _before_the_judge(s: SessionState, r: t.Record, b: t.EvaluationStarted) -> None:
    s.judging.begun(r.seq, b)


@_on(t.EvaluationEnded)
def _from_the_judge(s: SessionState, r: t.Record, b: t.EvaluationEnded) -> None:
    s.judging.over(r.seq, b)


@_on(t.ModelRequest)
def _request(s: SessionState, r: t.Record, b: t.ModelRequest) -> None:
    s.request = b
    s.requests = s.requests + 1
    if b.purpose != JUDGES:
        s.context.working = b.working
    purpose = f" for the {b.purpose}" if b.purpose else ""
    s.doing["model"] = Running(f"asking {b.model}{purpose}" + (f", try {b.attempt}" if b.attempt > 1 else ""), r.ts)


@_on(t.ModelMessage)
def _message(s: SessionState, r: t.Record, b: t.ModelMessage) -> None:
    if not b.purpose:
        s.judging.worked()
        s.context.tokens = b.usage.total
        if s.request is not None:
            s.context.layers = layers.measured(s.request.layers, b.usage.given)
    _replied(s, b)


@_on(t.ModelSummary)
def _summary(s: SessionState, r: t.Record, b: t.ModelSummary) -> None:
    s.context.wanted = False
    _replied(s, b)


def _replied(s: SessionState, b: t.ModelMessage | t.ModelSummary) -> None:
    s.usage += b.usage
    s.spent_nano += b.cost_nano
    s.failures_in_row = 0
    s.last_failure = None
    s.request = None
    s.doing.pop("model", None)


@_on(t.ModelFailed)
def _failed(s: SessionState, r: t.Record, b: t.ModelFailed) -> None:
    s.failures_in_row += 1
    s.last_failure = b
    s.request = None
    s.doing.pop("model", None)


@_on(t.ContextCleared)
def _context_cleared(s: SessionState, r: t.Record, b: t.ContextCleared) -> None:
    s.context.tokens = b.after
    s.context.clearings = s.context.clearings + 1


@_on(t.ContextReset)
def _context_reset(s: SessionState, r: t.Record, b: t.ContextReset) -> None:
    s.context.tokens = b.after
    s.context.resets = s.context.resets + 1
    s.memory.began_anew()


@_on(t.MemoryShown)
def _memory_shown(s: SessionState, r: t.Record, b: t.MemoryShown) -> None:
    s.memory.told(b)


@_on(t.UserMessage)
def _said(s: SessionState, r: t.Record, b: t.UserMessage) -> None:
    s.jobs.told(b.jobs)
    if b.origin == "human":
        s.iterations = s.iterations.said(r.seq, b.text)
        s.judging.instructed()


@_on(t.HooksEnded)
def _hooks_ended(s: SessionState, r: t.Record, b: t.HooksEnded) -> None:
    s.hooks = s.hooks.told()


@_on(t.ContextCompacted)
def _context_compacted(s: SessionState, r: t.Record, b: t.ContextCompacted) -> None:
    s.context.tokens = b.tokens_after
    s.context.compactions = s.context.compactions + 1


@_on(t.ContextWanted)
def _context_wanted(s: SessionState, r: t.Record, b: t.ContextWanted) -> None:
    s.context.wanted = True


@_on(t.ContextKept)
def _context_kept(s: SessionState, r: t.Record, b: t.ContextKept) -> None:
    s.context.wanted = False


@_on(t.ToolProposed)
def _proposed(s: SessionState, r: t.Record, b: t.ToolProposed) -> None:
    s.iterations = s.iterations.proposed(b)
    s.hooks = s.hooks.proposed(b)
    if b.by_harness and b.input is not None:
        s.check_calls[b.call_id] = ratchet.Running(str(b.input.get("command", "")), r.ts)


@_on(t.ToolStarted)
def _started(s: SessionState, r: t.Record, b: t.ToolStarted) -> None:
    call = s.calls.open.get(b.call_id)
    s.tool_calls += 1
    s.doing[b.call_id] = Running(f"running {call.tool if call else 'a tool'}", r.ts)
    if (check := s.check_calls.get(b.call_id)) is not None:
        check.started = r.ts


@_on(t.ToolEnded)
def _tool_ended(s: SessionState, r: t.Record, b: t.ToolEnded) -> None:
    s.doing.pop(b.call_id, None)
    s.rules = s.rules.edited(b.files_changed)
    s.iterations = s.iterations.chore_ended(b.call_id, b)
    s.hooks = s.hooks.changed(b.files_changed).chore_ended(b.call_id, b)
    s.jobs.call_over(b.call_id)
    check = s.check_calls.pop(b.call_id, None)
    if check is None:
        return
    check.status = b.status
    check.exit_code = b.exit_code
    check.preview = b.preview
    check.output = b.output
    s.checks[check.command] = b.exit_code if b.exit_code is not None else -1
    if b.status not in NOT_RUN:
        s.unjudged[b.call_id] = check


@_on(t.CheckVerdict)
def _verdict(s: SessionState, r: t.Record, b: t.CheckVerdict) -> None:
    s.unjudged.pop(b.call_id, None)
    s.verdicts[b.command] = b
    s.iterations = s.iterations.judged(r.seq, b.command)
    if not b.passed and s.checks.get(b.command) == 0:
        s.checks[b.command] = -1
    if b.ran is not None:
        s.first_counts.setdefault(b.command, (b.ran, b.excused or 0))
    if s.plan is not None:
        s.plan.work.judged(r.seq, b, s.plan.passes)


@_on(t.RatchetViolation)
def _violated(s: SessionState, r: t.Record, b: t.RatchetViolation) -> None:
    s.ratchet.violated(r.seq, b)


@_on(t.RatchetRestored)
def _restored(s: SessionState, r: t.Record, b: t.RatchetRestored) -> None:
    s.ratchet.restored(r.seq, b)
    if b.allowed:
        s.first_counts.clear()  # other tests run from now on


@_on(t.PlanLoaded)
def _plan(s: SessionState, r: t.Record, b: t.PlanLoaded) -> None:
    passes = {entry.id: entry.passes for entry in b.entries}
    s.plan = ratchet.Plan(b.path, {entry.id: entry for entry in b.entries}, passes, setup=b.setup, progress=b.progress)
    s.plan.work = Work.on(b)
    s.plan.text = b.text
    if b.text is not None:  # of the other plans the intent has them already
        s.checks |= {command: None for entry in b.entries for command in entry.checks if command not in s.checks}


@_on(t.PlanFlipped)
def _flipped(s: SessionState, r: t.Record, b: t.PlanFlipped) -> None:
    if s.plan is not None:
        s.plan.passes[b.entry] = b.passes


@_on(t.PhaseBegun)
def _phase_begun(s: SessionState, r: t.Record, b: t.PhaseBegun) -> None:
    if s.plan is not None:
        s.plan.work.begun.append(b.phase)


@_on(t.GateOpened)
def _gate_opened(s: SessionState, r: t.Record, b: t.GateOpened) -> None:
    if s.plan is not None:
        s.plan.work.opened.append(b.phase)


@_on(t.PlanUpdated)
def _plan_updated(s: SessionState, r: t.Record, b: t.PlanUpdated) -> None:
    if s.plan is not None:
        s.plan.work.updated(b)
    if b.trigger == ASSUMPTION:
        s.iterations = s.iterations.mistaken(r.seq, b.reason)


@_on(t.PlanRestored)
def _plan_restored(s: SessionState, r: t.Record, b: t.PlanRestored) -> None:
    if s.plan is not None:
        s.plan.did = list(b.did)
        s.plan.did_seq = r.seq


@_on(t.RulesKnown)
def _rules_known(s: SessionState, r: t.Record, b: t.RulesKnown) -> None:
    s.rules = s.rules.at_start(b.paths)


@_on(t.RulesRead)
def _rules_read(s: SessionState, r: t.Record, b: t.RulesRead) -> None:
    s.rules = s.rules.taken(b)


@_on(t.RatchetAnswered)
def _answered(s: SessionState, r: t.Record, b: t.RatchetAnswered) -> None:
    s.ratchet.answered(b)


@_on(t.ToolInDoubt)
def _in_doubt(s: SessionState, r: t.Record, b: t.ToolInDoubt) -> None:
    s.doing.pop(b.call_id, None)
    s.jobs.call_over(b.call_id)


@_on(t.JobStarted)
def _job_started(s: SessionState, r: t.Record, b: t.JobStarted) -> None:
    s.jobs.started(r.ts, b)


@_on(t.JobWaiting)
def _job_waiting(s: SessionState, r: t.Record, b: t.JobWaiting) -> None:
    s.jobs.waiting(b)
    s.doing.pop(b.call_id, None)


@_on(t.JobEnded)
def _job_ended(s: SessionState, r: t.Record, b: t.JobEnded) -> None:
    s.jobs.ended(b)


@_on(t.ToolResolved)
def _resolved(s: SessionState, r: t.Record, b: t.ToolResolved) -> None:
    if b.resolution != "confirmed_not_done":
        s.check_calls.pop(b.call_id, None)
        s.iterations = s.iterations.chore_ended(b.call_id, None)
        s.hooks = s.hooks.chore_ended(b.call_id, None)


@_on(t.IterationStarted)
def _iteration_started(s: SessionState, r: t.Record, b: t.IterationStarted) -> None:
    s.iterations = s.iterations.started(r.seq, b)
    if s.plan is not None:
        s.plan.work.begin(b.entry)


@_on(t.IterationEnded)
def _iteration_ended(s: SessionState, r: t.Record, b: t.IterationEnded) -> None:
    s.iterations = s.iterations.ended(b)


@_on(t.ProgressKept)
def _progress_kept(s: SessionState, r: t.Record, b: t.ProgressKept) -> None:
    s.iterations = s.iterations.noted()


@_on(t.ApproachFailed)
def _approach_failed(s: SessionState, r: t.Record, b: t.ApproachFailed) -> None:
    s.iterations = s.iterations.failed(r.seq, b)


@_on(t.UndoStarted)
def _undoing(s: SessionState, r: t.Record, b: t.UndoStarted) -> None:
    what = f"going back to {b.call_id}" if b.call_id.startswith("k") else f"undoing {b.call_id} and what came after"
    s.doing[b.undo_id] = Running(what, r.ts)


@_on(t.UndoEnded)
def _undone(s: SessionState, r: t.Record, b: t.UndoEnded) -> None:
    s.doing.pop(b.undo_id, None)
    s.last_undo = b.undo_id
    s.checks = dict.fromkeys(s.checks)  # what they said was said of another state
    s.verdicts.clear()
    s.judging.worked()
    if s.plan is not None:
        s.plan.work.undone()
    s.undone_since = s.ended is not None
    if s.ended is not None and s.ended.verified:
        s.ended = msgspec.structs.replace(
            s.ended, verified=False, reason="undone since it ended; no check has seen what is there now"
        )


@_on(t.ApprovalRequested)
def _asked(s: SessionState, r: t.Record, b: t.ApprovalRequested) -> None:
    s.approvals[b.approval_id] = OpenApproval(
        b.approval_id, b.kind, b.title, b.options, b.call_id, b.action_hash, b.risk, r.ts, r.seq, b.detail
    )


@_on(t.ApprovalDecided)
def _decided(s: SessionState, r: t.Record, b: t.ApprovalDecided) -> None:
    s.approvals.pop(b.approval_id, None)
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


@_on(t.BudgetReached)
def _budget(s: SessionState, r: t.Record, b: t.BudgetReached) -> None:
    s.budget = b


@_on(t.CapsRaised)
def _raised(s: SessionState, r: t.Record, b: t.CapsRaised) -> None:
    s.caps = b.caps
    s.budget = None


@_on(t.FinishUp)
def _finish(s: SessionState, r: t.Record, b: t.FinishUp) -> None:
    s.finish_up = b
    s.budget = None


@_on(t.LogRecovered)
def _recovered(s: SessionState, r: t.Record, b: t.LogRecovered) -> None:
    s.recovered += 1
