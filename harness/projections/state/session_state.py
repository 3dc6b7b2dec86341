"""What the log says about a session, as the one fold builds it."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.domain import outcomes
from harness.domain.calls.approval_shapes import Approved
from harness.domain.calls.call_lifecycle import OpenCalls
from harness.domain.state_span import Stretches
from harness.events import types as t
from harness.projections.state import checkpoints, project_rules, protected_files
from harness.projections.state.alarm_state import Alarms
from harness.projections.state.checked_before import Before
from harness.projections.state.contract import Contract
from harness.projections.state.course import Course
from harness.projections.state.draft import PlanDraft
from harness.projections.state.evaluation import JudgeState
from harness.projections.state.hooks import Hooks
from harness.projections.state.iterations import Iterations
from harness.projections.state.jobs import JobState
from harness.projections.state.masked_checks import Masking
from harness.projections.state.merging import MergeState
from harness.projections.state.progress import Pace
from harness.projections.state.publishing import PullState
from harness.projections.state.remembered import Remembered
from harness.projections.state.spend_rate import Burned


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
    detail: dict[str, object]
    deferred: str | None = None


@dataclass(slots=True)
class GoingOn:
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
    fresh: bool = False
    """A person wants it to begin anew with a hand-off alone."""


@dataclass(slots=True)
class SessionState:
    """Everything the log says about a session. Built only by `advance`."""

    seq: int = -1
    first_ts: str = ""
    last_ts: str = ""
    last_event: str = ""
    intent: t.SessionIntent | None = None
    created: t.SessionCreated | None = None
    head: str = ""
    """The commit that its branch was last seen to stand on."""
    held_back: str = ""
    """Why its newest commits are not on its branch yet; empty: all that is known of are."""
    name: str = ""
    caps: t.Caps = field(default_factory=t.Caps)
    desired: str = "running"
    desired_reason: str = ""
    parked: t.SessionParked | None = None
    parked_ts: str = ""
    ended: t.SessionEnded | None = None
    ended_ts: str = ""
    ended_seq: int = -1
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
    approved: Approved = field(default_factory=Approved)
    request: t.ModelRequest | None = None
    doing: dict[str, GoingOn] = field(default_factory=dict)
    spent_nano: int = 0
    unsettled: dict[str, t.ModelSettled] = field(default_factory=dict)
    """By reservation, replies whose cost nobody had settled when they came, as if they had cost their worst case."""
    burned: Burned = field(default_factory=Burned)
    stretches: Stretches = field(default_factory=Stretches)
    usage: t.Usage = field(default_factory=t.Usage)
    requests: int = 0
    context: Context = field(default_factory=Context)
    tool_calls: int = 0
    decisions: int = 0
    failures_in_row: int = 0
    last_failure: t.ModelFailed | None = None
    budget: t.BudgetReached | None = None
    finish_up: t.FinishUp | None = None
    unasked: int = 0
    """Bytes of the messages that no request has carried, as one spells them; those of a request that a cap on dollars
    refused are in what it needed.
    """
    checks: dict[str, int | None] = field(default_factory=dict)
    check_calls: dict[str, protected_files.RunCheck] = field(default_factory=dict)
    unjudged: dict[str, protected_files.RunCheck] = field(default_factory=dict)
    """Checks that ran and whose results the supervisor has to judge, by call."""
    before: Before = field(default_factory=Before)
    masking: Masking = field(default_factory=Masking)
    first_counts: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By check, how many tests its first run ran and excused."""
    plan: protected_files.PlanProgress | None = None
    hooks: Hooks = field(default_factory=Hooks)
    iterations: Iterations = field(default_factory=Iterations)
    rules: project_rules.Rules = field(default_factory=project_rules.Rules)
    repository_policy: str = ""
    """The text of the policy that its repository brings along, which can only tighten; empty without one."""
    draft: PlanDraft = field(default_factory=PlanDraft)
    course: Course = field(default_factory=Course)
    ratchet: protected_files.Ratchet = field(default_factory=protected_files.Ratchet)
    judging: JudgeState = field(default_factory=JudgeState)
    contract: Contract = field(default_factory=Contract)
    verdicts: dict[str, t.CheckVerdict] = field(default_factory=dict)
    """By check, the newest one on the files as they are."""
    passed_once: list[str] = field(default_factory=list)
    """Checks that passed since the work began, or since something was undone."""
    checkpoints: checkpoints.Checkpoints = field(default_factory=checkpoints.Checkpoints)
    jobs: JobState = field(default_factory=JobState)
    memory: Remembered = field(default_factory=Remembered)
    merging: MergeState = field(default_factory=MergeState)
    pulling: PullState = field(default_factory=PullState)
    pace: Pace = field(default_factory=Pace)
    alarms: Alarms = field(default_factory=Alarms)
    recovered: int = 0
    last_undo: str = ""
    unknown: int = 0

    @property
    def terminal(self) -> bool:
        return self.ended is not None

    def unread(self, said: int) -> bool:
        """True for words at this record that came behind its end: no agent reads them before it is continued."""
        return self.terminal and self.ended_seq < said

    @property
    def criteria(self) -> list[str]:
        """Every command that decides something of it: its own checks, then those of its plan's entries; each once."""
        entries = self.plan.entries.values() if self.plan is not None else ()
        written = self.draft.commands if self.plan is None else ()
        planned = (command for entry in entries for command in entry.checks)
        return list(dict.fromkeys([*self.checks, *planned, *written]))

    @property
    def outcomes(self) -> dict[str, str]:
        """How each check that decides stands against what it said before the work; those not run since are left out."""
        ran = {c: code == 0 for c, code in self.checks.items() if code is not None and self.decides(c)}
        return {c: outcomes.outcome(self.before.word(c), passed=passed) for c, passed in ran.items()}

    def decides(self, command: str) -> bool:
        """Whether a check's exit code counts: it hides none, or a person lets it count."""
        return not self.masking.hides(command) or command in self.ratchet.trusted

    @property
    def checks_passed(self) -> int:
        """How many checks pass, of those whose exit code counts."""
        return sum(1 for command, code in self.checks.items() if code == 0 and self.decides(command))
