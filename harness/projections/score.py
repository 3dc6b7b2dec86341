"""How well a session worked, in figures that one can compare between runs: from the log alone. Pure.

`Tally` takes one record after the other, so a log that grows is counted on; `score` reads the figures off it. What each
of them means stands in ``docs/guide/score.md``.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import msgspec

from harness.domain.calls.call_states import NOT_RUN, CallEnd
from harness.domain.outcomes import NOT_VERIFIED, NOW_PASSES, STILL_PASSES
from harness.events import message_parts
from harness.events import types as t
from harness.events.plan.iteration_events import PASSED, UNDECIDED

_FAILED = frozenset({CallEnd.ERROR, CallEnd.TIMEOUT})
_SENT_BACK = frozenset({"needs_revision", "failed"})
_ASIDE = frozenset({"why", "timeout_s"})
"""What of a call's input does not say which thing it is about."""
CHECKS = "checks"
"""The phase of criteria that are no plan's."""


class Phase(msgspec.Struct, frozen=True):
    """Points of one phase: 1 for each criterion that passes, else the share of its checks that pass."""

    name: str
    points: float
    of: int


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of a session. Rates are shares between 0 and 1, None without anything to share; money is in nano-USD,
    time in seconds.
    """

    outcome: str = ""
    proof: str = ""
    """What shows that it is done, in one word of `outcomes`; empty for one that is not."""
    verified: bool = False
    model: str = ""
    seconds: float = 0.0
    steps: int = 0
    calls: int = 0
    replans: int = 0
    replan_rate: float | None = None
    failures: int = 0
    recovered: int = 0
    recovery_rate: float | None = None
    criteria: int = 0
    passed: int = 0
    tokens: int = 0
    nano: int = 0
    tokens_per_criterion: float | None = None
    nano_per_criterion: float | None = None
    cache_hit: float | None = None
    asked: int = 0
    said: int = 0
    interrupts: int = 0
    blocked_seconds: float = 0.0
    claims: int = 0
    false_claims: int = 0
    violations: int = 0
    now_passing: int = 0
    """Criteria that are commands, pass, and failed before the work."""
    still_passing: int = 0
    """Those that pass, and did so before the work."""
    resets: int = 0
    compactions: int = 0
    undone: int = 0
    points: float = 0.0
    phases: tuple[Phase, ...] = ()


@dataclass(slots=True)
class Tally:
    """What was counted so far; `take` goes on with the next record."""

    seq: int = -1
    first_ts: str = ""
    last_ts: str = ""
    outcome: str = ""
    proof: str = ""
    verified: bool = False
    model: str = ""
    steps: int = 0
    calls: int = 0
    replans: int = 0
    failures: int = 0
    recovered: int = 0
    usage: t.Usage = field(default_factory=t.Usage)
    nano: int = 0
    said: int = 0
    asked: int = 0
    blocked: float = 0.0
    claims: int = 0
    false_claims: int = 0
    violations: int = 0
    resets: int = 0
    compactions: int = 0
    undone: int = 0
    checks: dict[str, bool] = field(default_factory=dict)
    """Whether the newest verdict on each criterion that is a command says that it passes."""
    outcomes: dict[str, str] = field(default_factory=dict)
    """How each stands, by its newest verdict, against what it said before the work."""
    entries: dict[str, t.PlanEntry] = field(default_factory=dict)
    passes: dict[str, bool] = field(default_factory=dict)
    things: dict[str, str] = field(default_factory=dict)
    """What each open call is about."""
    failing: list[str] = field(default_factory=list)
    """Things whose newest try failed."""
    requests: list[str] = field(default_factory=list)
    """Open requests to a person."""
    running: list[str] = field(default_factory=list)
    """Calls that run."""
    thinking: bool = False
    claimed: bool = False
    task: str = ""
    """The entry of the plan at hand."""
    """The agent says that it is done, and nothing contradicted it yet."""

    def take(self, r: t.Record) -> None:
        """Count the next record."""
        if self.requests and not self.running and not self.thinking:
            self.blocked += _between(self.last_ts, r.ts)
        self.seq = r.seq
        self.first_ts = self.first_ts or r.ts
        self.last_ts = r.ts
        handler = _HANDLERS.get(type(r.body))
        if handler is not None:
            handler(self, r.body)

    def contradict(self) -> None:
        """Something shows that the agent is not done, whatever it says; counted once for each time that it says so."""
        self.false_claims += self.claimed
        self.claimed = False

    def meant(self, command: str) -> bool:
        """Whether what the agent claimed is about this check: not when it is of other entries than the task's alone."""
        task = self.entries.get(self.task)
        others = any(command in entry.checks for name, entry in self.entries.items() if name != self.task)
        return task is None or command in task.checks or not others

    def tried(self, thing: str, ok: bool) -> None:
        """One try at a thing: failures in a row are one failure, and the next success recovers it."""
        if not ok:
            if thing not in self.failing:
                self.failing.append(thing)
                self.failures += 1
        elif thing in self.failing:
            self.failing.remove(thing)
            self.recovered += 1


def tally(records: Iterable[t.Record], start: Tally | None = None) -> Tally:
    """The count after all records; ``start`` is counted on, in place."""
    made = start or Tally()
    for record in records:
        made.take(record)
    return made


def score(y: Tally) -> Score:
    """The figures of a count."""
    planned = {command for entry in y.entries.values() for command in entry.checks}
    own = {command: ok for command, ok in y.checks.items() if command not in planned}
    phases = _phases(y, own)
    passed = sum(y.passes.values()) + sum(own.values())
    tokens = y.usage.total
    stand = Counter(seen for command, seen in y.outcomes.items() if command in y.checks)
    return Score(
        outcome=y.outcome,
        proof=y.proof,
        verified=y.verified,
        model=y.model,
        seconds=_between(y.first_ts, y.last_ts),
        steps=y.steps,
        calls=y.calls,
        replans=y.replans,
        replan_rate=_share(y.replans, y.steps),
        failures=y.failures,
        recovered=y.recovered,
        recovery_rate=_share(y.recovered, y.failures),
        criteria=len(y.entries) + len(own),
        passed=passed,
        tokens=tokens,
        nano=y.nano,
        tokens_per_criterion=_share(tokens, passed),
        nano_per_criterion=_share(y.nano, passed),
        cache_hit=y.usage.cache_hit,
        asked=y.asked,
        said=y.said,
        interrupts=y.asked + y.said,
        blocked_seconds=round(y.blocked, 3),
        claims=y.claims,
        false_claims=y.false_claims,
        violations=y.violations,
        now_passing=stand[NOW_PASSES],
        still_passing=stand[STILL_PASSES],
        resets=y.resets,
        compactions=y.compactions,
        undone=y.undone,
        points=round(sum(phase.points for phase in phases), 3),
        phases=phases,
    )


def _phases(y: Tally, own: Mapping[str, bool]) -> tuple[Phase, ...]:
    points: dict[str, float] = {}
    of: dict[str, int] = {}
    for entry in y.entries.values():
        points[entry.phase] = points.get(entry.phase, 0.0) + _credit(y, entry)
        of[entry.phase] = of.get(entry.phase, 0) + 1
    if own:
        points[CHECKS] = points.get(CHECKS, 0.0) + sum(own.values())
        of[CHECKS] = of.get(CHECKS, 0) + len(own)
    return tuple(Phase(name, round(points[name], 3), of[name]) for name in of)


def _credit(y: Tally, entry: t.PlanEntry) -> float:
    """One for an entry that passes, else the share of what decides it that passes; what no check decides does not."""
    if y.passes.get(entry.id, False):
        return 1.0
    decides = len(entry.checks) + entry.undecided
    return sum(y.checks.get(command, False) for command in entry.checks) / decides if decides else 0.0


def _share(part: float, whole: float) -> float | None:
    return part / whole if whole else None


def _between(since: str, until: str) -> float:
    """Seconds between two times of the log, never negative; 0 when one of them is none."""
    try:
        return max(0.0, (datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds())
    except (ValueError, TypeError):
        return 0.0


def _thing(b: t.ToolProposed) -> str:
    """What a call is about: a file by its path, everything else by what was asked for, word by word."""
    if b.input is None:
        return f"{b.tool} {b.input_blob.sha if b.input_blob is not None else ''}"
    path = b.input.get("path")
    if isinstance(path, str):
        return f"{b.tool} {path}"
    return f"{b.tool} {json.dumps({k: v for k, v in b.input.items() if k not in _ASIDE}, sort_keys=True)}"


# -- one record after the other ------------------------------------------------------------------------


def _intent(y: Tally, b: t.SessionIntent) -> None:
    y.model = b.model
    y.checks = dict.fromkeys(b.checks, False)


def _continued(y: Tally, b: t.SessionContinued) -> None:
    y.outcome = ""
    y.proof = ""
    y.verified = False
    if b.checks is not None:
        y.checks = {command: y.checks.get(command, False) for command in b.checks}


def _ended(y: Tally, b: t.SessionEnded) -> None:
    y.outcome = b.outcome
    y.proof = b.proof
    y.verified = b.verified


def _paid(y: Tally, b: t.ModelMessage | t.ModelSummary) -> None:
    y.thinking = False
    y.usage += b.usage
    y.nano += b.cost_nano


def _settled(y: Tally, b: t.ModelSettled) -> None:
    y.nano += b.more_nano


def _message(y: Tally, b: t.ModelMessage) -> None:
    _paid(y, b)
    if b.purpose:
        return  # a judge's word, which is no step of the agent
    y.steps += 1
    y.claimed = b.stop == message_parts.DONE
    y.claims += y.claimed


def _request(y: Tally, b: t.ModelRequest) -> None:
    y.thinking = True


def _failed(y: Tally, b: t.ModelFailed) -> None:
    y.thinking = False
    y.usage += b.known
    y.nano += b.cost_nano


def _left(y: Tally, b: t.LeaseEnded) -> None:
    y.thinking = False


def _user(y: Tally, b: t.UserMessage) -> None:
    y.said += b.origin == "human"


def _proposed(y: Tally, b: t.ToolProposed) -> None:
    if not (b.by_harness or b.own or b.by_judge or b.not_of_agent):
        y.things[b.call_id] = _thing(b)


def _started(y: Tally, b: t.ToolStarted) -> None:
    y.calls += b.call_id in y.things
    if b.call_id not in y.running:
        y.running.append(b.call_id)


def _tool_ended(y: Tally, b: t.ToolEnded) -> None:
    if b.call_id in y.running:
        y.running.remove(b.call_id)
    thing = y.things.pop(b.call_id, None)
    if thing is not None and b.status not in NOT_RUN:
        y.tried(thing, b.status not in _FAILED and not b.exit_code)


def _in_doubt(y: Tally, b: t.ToolInDoubt) -> None:
    if b.call_id in y.running:
        y.running.remove(b.call_id)


def _resolved(y: Tally, b: t.ToolResolved) -> None:
    if b.resolution != "confirmed_not_done":
        y.things.pop(b.call_id, None)


def _verdict(y: Tally, b: t.CheckVerdict) -> None:
    y.checks[b.command] = b.passed
    y.outcomes[b.command] = b.outcome
    y.tried(f"check {b.command}", b.passed)
    if not b.passed and y.meant(b.command):
        y.contradict()


def _turned(y: Tally, b: t.IterationStarted) -> None:
    y.task = b.entry


def _turned_over(y: Tally, b: t.IterationEnded) -> None:
    """What was claimed of a task that is over was so, whatever fails later."""
    y.task = ""
    if b.outcome in (PASSED, UNDECIDED):
        y.claimed = False


def _loaded(y: Tally, b: t.PlanLoaded) -> None:
    y.entries = {entry.id: entry for entry in b.entries}
    y.passes = {entry.id: entry.passes for entry in b.entries}


def _flipped(y: Tally, b: t.PlanFlipped) -> None:
    if b.entry in y.passes:
        y.passes[b.entry] = b.passes


def _plan_restored(y: Tally, b: t.PlanRestored) -> None:
    y.violations += 1
    y.contradict()


def _violated(y: Tally, b: t.RatchetViolation) -> None:
    y.violations += 1
    y.contradict()


def _asked(y: Tally, b: t.ApprovalRequested) -> None:
    y.asked += 1
    y.requests.append(b.approval_id)


def _answered(y: Tally, b: t.ApprovalDecided | t.ApprovalStale | t.ApprovalWithdrawn) -> None:
    if b.approval_id in y.requests:
        y.requests.remove(b.approval_id)


def _reset(y: Tally, b: t.ContextReset) -> None:
    y.resets += 1


def _compacted(y: Tally, b: t.ContextCompacted) -> None:
    y.compactions += 1


def _updated(y: Tally, b: t.PlanUpdated) -> None:
    y.replans += bool(b.trigger)


def _evaluated(y: Tally, b: t.EvaluationEnded) -> None:
    if b.verdict in _SENT_BACK:
        y.contradict()


def _undone(y: Tally, b: t.UndoEnded) -> None:
    if b.error or b.of_checks:
        return
    y.undone += 1
    y.verified = False
    y.proof = NOT_VERIFIED if y.proof else ""


_HANDLERS: Mapping[type[t.Body], Callable[[Tally, Any], None]] = {
    t.SessionIntent: _intent,
    t.SessionContinued: _continued,
    t.SessionEnded: _ended,
    t.ModelMessage: _message,
    t.ModelSummary: _paid,
    t.ModelSettled: _settled,
    t.ModelRequest: _request,
    t.ModelFailed: _failed,
    t.LeaseEnded: _left,
    t.UserMessage: _user,
    t.ToolProposed: _proposed,
    t.ToolStarted: _started,
    t.ToolEnded: _tool_ended,
    t.ToolInDoubt: _in_doubt,
    t.ToolResolved: _resolved,
    t.CheckVerdict: _verdict,
    t.IterationStarted: _turned,
    t.IterationEnded: _turned_over,
    t.PlanLoaded: _loaded,
    t.PlanFlipped: _flipped,
    t.PlanRestored: _plan_restored,
    t.RatchetViolation: _violated,
    t.ApprovalRequested: _asked,
    t.ApprovalDecided: _answered,
    t.ApprovalStale: _answered,
    t.ApprovalWithdrawn: _answered,
    t.ContextReset: _reset,
    t.ContextCompacted: _compacted,
    t.PlanUpdated: _updated,
    t.EvaluationEnded: _evaluated,
    t.UndoEnded: _undone,
}
