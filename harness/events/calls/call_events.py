"""Events of one call, from its proposal to its end, and of what a person was asked about it."""

from __future__ import annotations

from harness.events.body import BlobRef, Body, By
from harness.events.plan.evaluation_events import RAN_FOR
from harness.events.work.merge_events import RAN_FOR as RAN_FOR_MERGE
from harness.events.work.pull_events import RAN_FOR as RAN_FOR_PULL
from harness.tools import registry

BEFORE_WORK = "before work"
"""What a check is called that runs before the agent begins; no call of a model can be, for the blank."""
READS_BEFORE_WORK = "before work, only reads"
"""One of those that only read: nothing can be written where it runs, so others may run beside it."""


class ToolProposed(Body, frozen=True, kw_only=True):
    """The agent (or the harness, for ``check``) wants one effect.

    ``call_id`` is ``c<seq>.<i>``, strictly increasing; ``ref`` is the agent's own name for the call, empty for the
    harness's.
    """

    TYPE = "tool.proposed"
    call_id: str
    tool: str
    ref: str
    input: dict[str, object] | None = None
    input_blob: BlobRef | None = None
    claim: str = ""

    @property
    def by_harness(self) -> bool:
        """True for a done criterion that the harness runs; a model that calls a tool of that name has proved
        nothing.
        """
        return self.tool == registry.CHECK and not self.ref

    @property
    def own(self) -> bool:
        """True for whatever the harness runs on its own account."""
        return self.tool in registry.OWN and (not self.ref or self.before_work)

    @property
    def by_judge(self) -> bool:
        """True for a command that a judge wants to see run; it decides nothing by itself."""
        return self.tool == registry.CHECK and self.ref.startswith(RAN_FOR)

    @property
    def by_merge(self) -> bool:
        """True for a check on the result of a merge: it says nothing of the session's own files, and its agent never
        hears of it.
        """
        return self.tool == registry.CHECK and self.ref.startswith(RAN_FOR_MERGE)

    @property
    def before_work(self) -> bool:
        """True for a check that is run to see what it says before the agent begins."""
        return self.tool == registry.CHECK and self.ref in (BEFORE_WORK, READS_BEFORE_WORK)

    @property
    def only_reads(self) -> bool:
        """True for a check that runs where nothing can be written."""
        return self.tool == registry.CHECK and self.ref == READS_BEFORE_WORK

    @property
    def by_pull(self) -> bool:
        """True for a push that a person ordered after the end."""
        return self.ref.startswith(RAN_FOR_PULL)

    @property
    def not_of_agent(self) -> bool:
        """True for what is no work of the session's agent, which never hears of it."""
        return self.by_merge or self.by_pull or self.before_work


class ToolJudged(Body, frozen=True, kw_only=True):
    """Policy's verdict on the canonical action. ``action`` is what would run and what was hashed."""

    TYPE = "tool.judged"
    call_id: str
    action_hash: str
    verdict: str
    rule: str
    reason: str
    policy: str
    effects: list[str] = []
    action: dict[str, object] | None = None
    action_blob: BlobRef | None = None


class ApprovalRequested(Body, frozen=True, kw_only=True):
    """A question for the human.

    ``kind``: as in `harness.domain.calls.approval_kind`. ``options`` are the only decisions accepted.
    """

    TYPE = "approval.requested"
    approval_id: str
    kind: str
    title: str
    options: list[str]
    call_id: str = ""
    action_hash: str = ""
    risk: str = "medium"
    detail: dict[str, object] = {}


class ApprovalDecided(Body, frozen=True, kw_only=True):
    """``decision``: allow, allow_edited, deny, answer, raise, finish, stop, done, failed, unknown, retry, keep. Used
    once. ``cap`` is the cap that the request was about, in whose unit a ``value`` to raise it to is counted.
    """

    TYPE = "approval.decided"
    approval_id: str
    decision_id: str
    decision: str
    call_id: str = ""
    action_hash: str = ""
    message: str = ""
    edited: dict[str, object] | None = None
    value: int | None = None
    cap: str = ""
    by: By = By()
    shown_hash: str = ""


class ApprovalStale(Body, frozen=True, kw_only=True):
    """What was approved is no longer what would run; ``difference`` says why. The call is judged again."""

    TYPE = "approval.stale"
    approval_id: str
    call_id: str
    difference: list[str]


class ApprovalWithdrawn(Body, frozen=True, kw_only=True):
    """A request needs no answer any more."""

    TYPE = "approval.withdrawn"
    approval_id: str
    why: str


class ApprovalDeferred(Body, frozen=True, kw_only=True):
    """A person put a request off."""

    TYPE = "approval.deferred"
    approval_id: str
    until: str = ""


class ToolStarted(Body, frozen=True, kw_only=True):
    """A call starts; this is durable before the effect. ``effect``: read, reversible, contained, irreversible."""

    TYPE = "tool.started"
    call_id: str
    action_hash: str
    effect: str
    decision_id: str = ""
    attempt: int = 1
    pre: dict[str, object] = {}
    snapshot: str = ""
    """The state of the worktree just before, in the vault; empty when the call changes no file."""
    left_out: int = 0
    """Things in the worktree whose content that snapshot does not hold; the first are named."""
    left_out_names: list[str] = []
    worked: int = 0
    """Names in the worktree, and HEAD, that became another thing since the snapshot of the call before; what tools make
    by themselves is not counted.
    """
    worked_names: list[str] = []
    """The first files of these."""


class ToolEnded(Body, frozen=True, kw_only=True):
    """``status``: ok, error, timeout, cancelled, denied, refused. ``preview`` is at most 8 KiB; ``output`` the whole.

    ``limit`` names the setting under ``[limits]`` that the call came to; its numbers are in the preview.
    """

    TYPE = "tool.ended"
    call_id: str
    status: str
    preview: str = ""
    exit_code: int | None = None
    output: BlobRef | None = None
    truncated: bool = False
    ms: int = 0
    files_changed: list[str] = []
    limit: str = ""

    @property
    def size(self) -> int:
        """Bytes of the whole output."""
        return self.output.bytes if self.output is not None else len(self.preview.encode("utf-8", "replace"))


class ToolInDoubt(Body, frozen=True, kw_only=True):
    """A call started and nobody saw how it ended."""

    TYPE = "tool.in_doubt"
    call_id: str
    why: str


class ToolResolved(Body, frozen=True, kw_only=True):
    """An in-doubt call got an answer: confirmed_done, confirmed_not_done (may run again), unknown_told_model,
    failed.
    """

    TYPE = "tool.resolved"
    call_id: str
    resolution: str
    evidence: str = ""
    by: By = By()
