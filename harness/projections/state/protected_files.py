"""What a log says of protected files that were changed: seen, put back, asked about, answered. Pure.

The fold holds a `Ratchet`; the supervisor does what is due by it, and no session is done before it is clear.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.events import types as t
from harness.projections.state.plan_state import Work

ALLOW = "allow"
KEEP = "keep"
TOUCHED = "touched"
"""How a file was changed that a check wrote to while it ran, and what is accepted of one that it may write to."""
_NAMED = 5


@dataclass(slots=True)
class RunCheck:
    """A check that ran, and whose result nobody judged yet. ``started`` is its record's time."""

    command: str
    started: str
    status: str = ""
    exit_code: int | None = None
    preview: str = ""
    output: t.BlobRef | None = None


@dataclass(slots=True)
class PlanProgress:
    """Where a session's plan stands."""

    path: str
    entries: dict[str, t.PlanEntry] = field(default_factory=dict)
    passes: dict[str, bool] = field(default_factory=dict)
    did: list[str] = field(default_factory=list)
    """What the agent last did to it, in words."""
    did_seq: int = -1
    work: Work = field(default_factory=Work)
    text: t.BlobRef | None = None
    """The text that it began with, where no commit has it."""
    setup: str = ""
    progress: str = ""
    proved: list[str] = field(default_factory=list)
    """Entries that passed once: what holds again is no news."""
    by_word: list[str] = field(default_factory=list)
    """Entries that a person lets pass although their criteria held before the work."""
    asked: bool = False
    """A person was asked about such entries."""

    @property
    def passed(self) -> int:
        return sum(self.passes.values())

    @property
    def undecided(self) -> int:
        """Entries that no check decides alone."""
        return sum(1 for entry in self.entries.values() if entry.undecided and not self.passes[entry.id])


@dataclass(slots=True)
class Ratchet:
    """Where the protected files of a session stand."""

    seq: int = -1
    """The newest violation."""
    count: int = 0
    paths: list[str] = field(default_factory=list)
    """Those of the newest violation."""
    unanswered: dict[str, t.RatchetViolation] = field(default_factory=dict)
    bringing: dict[str, t.RatchetViolation] = field(default_factory=dict)
    """Allowed by a person, and not in the worktree again yet."""
    accepted: dict[str, str] = field(default_factory=dict)
    """Digests by path that a person allowed."""
    trusted: list[str] = field(default_factory=list)
    """Checks that count by a person's word, although they hide their exit codes."""
    kept: bool = False
    """A person said that the originals stay: what is changed again is put back without another question."""
    reason: str = ""
    """The person's words to that."""
    brought_seq: int = -1
    """Where an allowed change was back in the worktree: what checks said before was said of another state."""

    @property
    def clear(self) -> bool:
        return not self.unanswered and not self.bringing

    def violated(self, seq: int, b: t.RatchetViolation) -> None:
        self.count += 1
        if b.files:
            self.seq = seq
            self.paths = [one.path for one in b.files]
        if not self.kept:
            self.unanswered[b.violation_id] = b

    def answered(self, b: t.RatchetAnswered) -> None:
        """A person's word on what was unanswered until then."""
        asked = [v for name in b.violations if (v := self.unanswered.pop(name, None)) is not None]
        if b.answer == KEEP:
            self.kept = True
            self.reason = b.message
            return
        for violation in asked:
            self.bringing[violation.violation_id] = violation
            if violation.check and violation.check not in self.trusted:
                self.trusted.append(violation.check)
            for one in violation.files:
                if one.how != TOUCHED or one.path not in self.accepted:
                    self.accepted[one.path] = one.sha

    def restored(self, seq: int, b: t.RatchetRestored) -> None:
        if b.allowed and self.bringing.pop(b.violation_id, None) is not None:
            self.brought_seq = seq

    def changed(self) -> list[str]:
        """What was done to protected files and is unanswered, in words, one for each path; then the checks that cannot
        fail.
        """
        told = {one.path: f"{one.path} {told_of(one.how)}" for v in self.unanswered.values() for one in v.files}
        return [*told.values(), *dict.fromkeys(cannot_fail(v) for v in self.unanswered.values() if v.check)]


def cannot_fail(b: t.RatchetViolation) -> str:
    """In words, that a check says nothing of what it runs."""
    return f"`{b.check}` hides an exit code and decides nothing"


def told_of(how: str) -> str:
    """What became of a path, in words after its name."""
    return {
        "changed": "was changed",
        "deleted": "was deleted",
        "replaced": "was replaced",
        "shadows": "is new and would be read first",
        "touched": "was written to while the check ran",
    }.get(how, how)


def some(names: list[str]) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {more} more" if more > 0 else "")
