"""Events of what done means: verdicts of checks, protected files, the entries of a plan."""

from __future__ import annotations

import msgspec

from harness.domain import outcomes
from harness.events.body import BlobRef, Body, By


class CheckVerdict(Body, frozen=True, kw_only=True):
    """Whether the result of a check counts, decided by the supervisor. ``why`` it does not although it exited with 0.

    ``ran`` tests had an outcome, ``excused`` were skipped or expected to fail; None when its output tells of none.
    ``before``: what it said before the work, ``passed`` or ``failed``; empty when nobody knows.
    """

    TYPE = "check.verdict"
    call_id: str
    command: str
    passed: bool
    why: str = ""
    ran: int | None = None
    excused: int | None = None
    masked: str = ""
    """Why it decides nothing: its exit code does not tell that what it runs failed."""
    before: str = ""
    facts: list[str] = []
    """What it reads and that is not as at the start, of one that passes: gone, ignored or stubbed."""

    @property
    def outcome(self) -> str:
        """How it stands against what it said before the work."""
        return outcomes.outcome(self.before, passed=self.passed)


class CheckedBefore(Body, frozen=True, kw_only=True):
    """The result of a check before the work began. ``passed`` is None when it was not run through no doing of its
    own; one whose program is missing, or that took too long, failed.

    ``ran`` and ``excused`` as in `CheckVerdict`; ``why`` as there, or why it was not run.
    """

    TYPE = "check.before"
    call_id: str
    command: str
    passed: bool | None
    exit_code: int | None = None
    why: str = ""
    ran: int | None = None
    excused: int | None = None

    @property
    def word(self) -> str:
        """``passed`` or ``failed``; empty when nobody knows."""
        if self.passed is None:
            return ""
        return outcomes.PASSED if self.passed else outcomes.FAILED


class ChecksSkipped(Body, frozen=True, kw_only=True):
    """A person skipped checks before the work; their results from then stay unknown."""

    TYPE = "checks.skipped"
    commands: list[str]
    by: By = By()


class ViolatedFile(msgspec.Struct, frozen=True):
    """``how``: changed, deleted, replaced, shadows (a new file that would be read first), touched. ``sha`` is what the
    agent left there.
    """

    path: str
    how: str
    sha: str = ""


class RatchetViolation(Body, frozen=True, kw_only=True):
    """Protected files are not as they were at the start; they are put back before a check runs. What was there lies
    in the session's folder, under ``aside/<violation_id>/<index>``.

    Without files it is a ``check`` that hides an exit code; ``why`` that is so.
    """

    TYPE = "ratchet.violation"
    violation_id: str
    call_id: str
    files: list[ViolatedFile]
    protected: int = 0
    """So many files are protected in all."""
    check: str = ""
    why: str = ""


class RatchetRestored(Body, frozen=True, kw_only=True):
    """Protected files were put back; with ``allowed`` to the version that a person allowed. ``refused`` says what
    could not be brought there.
    """

    TYPE = "ratchet.restored"
    violation_id: str
    restored: int
    refused: list[str] = []
    allowed: bool = False


class RatchetAnswered(Body, frozen=True, kw_only=True):
    """A person's answer on changed protected files: ``allow`` (the agent's version counts from now on) or ``keep``
    (the original).
    """

    TYPE = "ratchet.answered"
    violations: list[str]
    answer: str
    message: str = ""
    by: By = By()


class PlanEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One entry of a plan: the commands that decide it, and how many of its criteria none decides."""

    id: str
    title: str
    checks: list[str]
    undecided: int = 0
    passes: bool = False
    phase: str = ""
    depends_on: list[str] = []
    priority: int = 0
    """The lowest comes first; 0 = none given, after all others."""


class PlanPhase(msgspec.Struct, frozen=True, omit_defaults=True):
    """A phase of a plan. ``gate``: why it needs a person's word, empty when it does not; ``above_nano``: only once so
    much was spent. ``asks``: kinds of effect (`GateKind`) of which each call needs a person's word.
    """

    name: str = ""
    gate: str = ""
    above_nano: int | None = None
    asks: list[str] = []


class PlanLoaded(Body, frozen=True, kw_only=True):
    """The plan as the commit has it that the session began from; ``form``: features, userStories or tasks; ``phases``
    in their order (none named: it is one).
    """

    TYPE = "plan.loaded"
    path: str
    form: str
    entries: list[PlanEntry]
    phases: list[PlanPhase] = []
    text: BlobRef | None = None
    """The whole file, of a plan that the session wrote itself."""
    setup: str = ""
    """The script beside it that makes the place ready, if there is one."""
    progress: str = ""
    """Where the agent notes what it did."""
    by_word: list[str] = []
    """Entries that a person lets pass although their criteria held before the work, of a plan that was put before
    them.
    """


class PlanAllowed(Body, frozen=True, kw_only=True):
    """A person accepted entries whose criteria all held before the work: they may pass."""

    TYPE = "plan.allowed"
    names: list[str]
    by: By = By()


class PlanFlipped(Body, frozen=True, kw_only=True):
    """The harness set ``passes`` of an entry, by what it saw in ``calls``."""

    TYPE = "plan.flipped"
    entry: str
    passes: bool
    why: str
    calls: list[str]


class PlanRestored(Body, frozen=True, kw_only=True):
    """The agent changed the plan, and the change was undone; ``did`` describes it, a sentence each. It is as the
    harness wrote it again.
    """

    TYPE = "plan.restored"
    call_id: str
    did: list[str]
