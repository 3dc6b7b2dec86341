"""Every event a session log can hold, as one table of frozen structs.

A log line is an envelope (``Record``) around one body; the keeper treats bodies as bytes, everybody else decodes them
here. Money is in integer nano-USD (1e-9 USD), times are UTC RFC 3339 with milliseconds (display only; order is
``seq``). Unknown types decode to `Unknown` and are kept: an older reader skips what a newer writer added.
"""

from __future__ import annotations

import msgspec

from harness.events.body import BlobRef, Body, By, Caps, Usage
from harness.events.calls.call_events import (
    ApprovalDecided,
    ApprovalDeferred,
    ApprovalRequested,
    ApprovalStale,
    ApprovalWithdrawn,
    ToolEnded,
    ToolInDoubt,
    ToolJudged,
    ToolProposed,
    ToolResolved,
    ToolStarted,
)
from harness.events.calls.grant_events import GrantMade, GrantUsed
from harness.events.calls.job_events import JobEnded, JobStarted, JobWaiting
from harness.events.calls.policy_events import PolicyRead
from harness.events.conversation.context_events import (
    ContextCleared,
    ContextCompacted,
    ContextKept,
    ContextReset,
    ContextWanted,
    ModelSummary,
)
from harness.events.conversation.conversation_events import ModelFailed, ModelMessage, ModelRequest, UserMessage
from harness.events.conversation.memory_events import MemoryChanged, MemoryShown
from harness.events.conversation.project_rules_events import RulesKnown, RulesRead
from harness.events.plan.contract_events import ContractAgreed, ContractDrafted, ContractOpened, ContractWanted
from harness.events.plan.course_events import PlanUpdated
from harness.events.plan.draft_events import PlanDrafted, PlanTried
from harness.events.plan.evaluation_events import (
    EvaluationEnded,
    EvaluationRequested,
    EvaluationStarted,
    Finding,
    JudgeWanted,
)
from harness.events.plan.iteration_events import (
    ApproachFailed,
    EditsLooked,
    HooksEnded,
    IterationEnded,
    IterationStarted,
    PlanArchived,
    ProgressKept,
    SetupFound,
    Ways,
)
from harness.events.plan.masked_check_events import ChecksLooked, MaskedCheck
from harness.events.plan.phase_events import GateOpened, PhaseBegun
from harness.events.plan.plan_events import (
    CheckedBefore,
    ChecksSkipped,
    CheckVerdict,
    PlanAllowed,
    PlanEntry,
    PlanFlipped,
    PlanLoaded,
    PlanPhase,
    PlanRestored,
    RatchetAnswered,
    RatchetRestored,
    RatchetViolation,
    ViolatedFile,
)
from harness.events.session.alarm_events import AlarmCleared, AlarmRaised, AlarmSnoozed
from harness.events.session.money_events import (
    BillsBelieved,
    BreakerOpened,
    BudgetReached,
    CapsRaised,
    FinishUp,
    ModelSettled,
)
from harness.events.session.note_events import HarnessNote, TimePassed
from harness.events.session.session_events import (
    KeeperStarted,
    LeaseEnded,
    LeaseGranted,
    LogRecovered,
    Quarantined,
    SessionContinued,
    SessionCreated,
    SessionDesired,
    SessionEnded,
    SessionIntent,
    SessionParked,
)
from harness.events.work.checkpoint_events import (
    CheckpointCreated,
    CheckpointDropped,
    CheckpointRestored,
    Forked,
    SessionForked,
)
from harness.events.work.commit_events import Commit, WorkCommitted, WorkHeldBack
from harness.events.work.merge_events import MergeChecked, MergeEnded, MergeHandedBack, MergeStarted
from harness.events.work.pull_events import PullEnded, PullOpened, PullStarted
from harness.events.work.undo_events import UndoEnded, UndoStarted

__all__ = [
    "TYPES",
    "AlarmCleared",
    "AlarmRaised",
    "AlarmSnoozed",
    "ApproachFailed",
    "ApprovalDecided",
    "ApprovalDeferred",
    "ApprovalRequested",
    "ApprovalStale",
    "ApprovalWithdrawn",
    "BillsBelieved",
    "BlobRef",
    "Body",
    "BreakerOpened",
    "BudgetReached",
    "By",
    "Caps",
    "CapsRaised",
    "CheckVerdict",
    "CheckedBefore",
    "CheckpointCreated",
    "CheckpointDropped",
    "CheckpointRestored",
    "ChecksLooked",
    "ChecksSkipped",
    "Commit",
    "ContextCleared",
    "ContextCompacted",
    "ContextKept",
    "ContextReset",
    "ContextWanted",
    "ContractAgreed",
    "ContractDrafted",
    "ContractOpened",
    "ContractWanted",
    "EditsLooked",
    "Envelope",
    "EvaluationEnded",
    "EvaluationRequested",
    "EvaluationStarted",
    "Finding",
    "FinishUp",
    "Forked",
    "GateOpened",
    "GrantMade",
    "GrantUsed",
    "HarnessNote",
    "HooksEnded",
    "IterationEnded",
    "IterationStarted",
    "JobEnded",
    "JobStarted",
    "JobWaiting",
    "JudgeWanted",
    "KeeperStarted",
    "LeaseEnded",
    "LeaseGranted",
    "LogRecovered",
    "MaskedCheck",
    "MemoryChanged",
    "MemoryShown",
    "MergeChecked",
    "MergeEnded",
    "MergeHandedBack",
    "MergeStarted",
    "ModelFailed",
    "ModelMessage",
    "ModelRequest",
    "ModelSettled",
    "ModelSummary",
    "PhaseBegun",
    "PlanAllowed",
    "PlanArchived",
    "PlanDrafted",
    "PlanEntry",
    "PlanFlipped",
    "PlanLoaded",
    "PlanPhase",
    "PlanRestored",
    "PlanTried",
    "PlanUpdated",
    "PolicyRead",
    "ProgressKept",
    "PullEnded",
    "PullOpened",
    "PullStarted",
    "Quarantined",
    "RatchetAnswered",
    "RatchetRestored",
    "RatchetViolation",
    "Record",
    "RulesKnown",
    "RulesRead",
    "SessionContinued",
    "SessionCreated",
    "SessionDesired",
    "SessionEnded",
    "SessionForked",
    "SessionIntent",
    "SessionParked",
    "SetupFound",
    "TimePassed",
    "ToolEnded",
    "ToolInDoubt",
    "ToolJudged",
    "ToolProposed",
    "ToolResolved",
    "ToolStarted",
    "UndoEnded",
    "UndoStarted",
    "Unknown",
    "Usage",
    "UserMessage",
    "ViolatedFile",
    "Ways",
    "WorkCommitted",
    "WorkHeldBack",
    "decode",
    "to_wire",
]


class Unknown(Body, frozen=True, kw_only=True):
    """A type this version does not know, kept as it was."""

    TYPE = "?"
    type: str
    data: dict[str, object]


TYPES: dict[str, type[Body]] = {cls.TYPE: cls for cls in Body.__subclasses__() if cls is not Unknown}


class Envelope(msgspec.Struct, frozen=True):
    """A log line without its two checksum members: see ``framing.py`` for those."""

    seq: int
    ts: str
    type: str
    actor: str
    data: msgspec.Raw
    v: int = 1
    gen: int = 0


class Record(msgspec.Struct, frozen=True):
    """One decoded event."""

    seq: int
    ts: str
    actor: str
    gen: int
    body: Body

    @property
    def type(self) -> str:
        return self.body.type if isinstance(self.body, Unknown) else self.body.TYPE


_envelope = msgspec.json.Decoder(Envelope)
_bodies = {name: msgspec.json.Decoder(cls) for name, cls in TYPES.items()}
_any = msgspec.json.Decoder(dict[str, object])


def decode(line: bytes) -> Record:
    """Decode one log line; a body that this version cannot understand is kept as `Unknown`.

    Raises msgspec.DecodeError (ValidationError included) on a line that is no event.
    """
    try:
        return _decoded(line)
    except UnicodeDecodeError as exc:
        raise msgspec.DecodeError(f"bytes that are no text: {exc}") from exc
    except RecursionError as exc:
        raise msgspec.DecodeError("values nested too deeply") from exc


def _decoded(line: bytes) -> Record:
    env = _envelope.decode(line)
    decoder = _bodies.get(env.type)
    body: Body
    try:
        body = Unknown(type=env.type, data=_any.decode(env.data)) if decoder is None else decoder.decode(env.data)
    except msgspec.ValidationError:
        body = Unknown(type=env.type, data=_any.decode(env.data))
    return Record(env.seq, env.ts, env.actor, env.gen, body)


def to_wire(body: Body) -> dict[str, object]:
    """``{"type", "data"}`` as the keeper's ``append`` takes it."""
    return {"type": body.TYPE, "data": msgspec.to_builtins(body)}
