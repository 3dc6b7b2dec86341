"""What a log says of the work on a plan: how each entry stands, and why. Pure; the fold holds it beside the plan.

Whether an entry passes is for the harness alone and stands in the plan; this is what lies around that word.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.domain.calls.call_id import together
from harness.events import types as t

PENDING = "pending"
IN_PROGRESS = "in_progress"
PASSED = "passed"
FAILED = "failed"
BLOCKED = "blocked"
_EVIDENCE = 10
_NOTES = 5


@dataclass(slots=True)
class Standing:
    """How one entry stands, beside its ``passes``."""

    begun: bool = False
    """Somebody works on it, and nothing was judged since."""
    blocked: str = ""
    """Why it cannot be worked on, in the agent's words."""
    failing: bool = False
    attempts: int = 0
    """How often it was worked on: begun, or judged without that, while it did not pass."""
    round: str = ""
    """The round of checks that judged it last."""
    evidence: list[int] = field(default_factory=list)
    """Records of the newest verdicts on its checks."""
    notes: list[str] = field(default_factory=list)
    """What the agent wants to remember of it, the newest last."""


@dataclass(slots=True)
class Work:
    """The work on a plan."""

    standing: dict[str, Standing] = field(default_factory=dict)
    decided_by: dict[str, list[str]] = field(default_factory=dict)
    """By check, the entries that it decides."""
    phases: list[t.PlanPhase] = field(default_factory=list)
    """In their order."""
    begun: list[str] = field(default_factory=list)
    """Phases that began."""
    opened: list[str] = field(default_factory=list)
    """Phases whose gate a person opened."""

    @classmethod
    def on(cls, b: t.PlanLoaded) -> Work:
        """The work on a plan that was just read."""
        decided: dict[str, list[str]] = {}
        for entry in b.entries:
            for command in entry.checks:
                decided.setdefault(command, []).append(entry.id)
        return cls({entry.id: Standing() for entry in b.entries}, decided, list(b.phases) or [t.PlanPhase()])

    def state(self, entry: str, passes: bool) -> str:
        """How it stands: one of the words above."""
        if passes:
            return PASSED
        one = self.standing[entry]
        if one.blocked:
            return BLOCKED
        if one.begun:
            return IN_PROGRESS
        return FAILED if one.failing else PENDING

    def judged(self, seq: int, b: t.CheckVerdict, passes: dict[str, bool], *, by_task: bool) -> None:
        """A verdict on a check; those of one round are of one attempt. ``by_task``: the tasks that were given out are
        the attempts, so that a round is none by itself.
        """
        of = together(b.call_id)
        for name in self.decided_by.get(b.command, ()):
            one = self.standing[name]
            first = one.round != of
            one.failing = not b.passed or (one.failing and not first)
            if first and not one.begun and not passes[name] and not by_task:
                one.attempts += 1
            one.begun = one.begun and by_task
            one.round = of
            one.evidence = [*one.evidence, seq][-_EVIDENCE:]

    def updated(self, b: t.PlanUpdated) -> None:
        """The agent's word on an entry."""
        one = self.standing.get(b.entry)
        if one is None:
            return
        if b.note:
            one.notes = [*one.notes, b.note][-_NOTES:]
        if b.state == IN_PROGRESS:
            self.begin(b.entry)
        elif b.state == BLOCKED:
            one.begun = False
            one.blocked = b.reason

    def begin(self, entry: str) -> None:
        """Somebody works on it from now on."""
        if (one := self.standing.get(entry)) is not None:
            one.attempts += not one.begun
            one.begun = True
            one.blocked = ""

    def ended(self, entry: str) -> None:
        """The task is over: nobody works on it."""
        if (one := self.standing.get(entry)) is not None:
            one.begun = False

    def continued(self) -> None:
        """Every entry may be tried again as often as allowed."""
        for one in self.standing.values():
            one.attempts = 0

    def undone(self) -> None:
        """What was judged was another state of the files."""
        for one in self.standing.values():
            one.failing = False
