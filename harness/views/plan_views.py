"""A session's plan as clients see it. Texts are untrusted: whoever shows them passes the display function."""

from __future__ import annotations

import msgspec

from harness.domain.outcomes import PASSED, UNKNOWN


class EntryView(msgspec.Struct, frozen=True, kw_only=True):
    """An entry of the plan; ``evidence`` are the records of its newest verdicts.

    ``waits_for``: entries that have to pass first; ``undecided``: so many of its criteria no check decides;
    ``before``: what each of its checks said before the work: passed, failed or unknown; ``outcome``: now_passes when it
    passes and something of it failed before, still_passes when all that decides it passed before, else passes or empty;
    ``claimed``: its task ended with the agent's word that it is done, and nothing more.
    """

    id: str
    title: str
    state: str
    phase: str = ""
    depends_on: list[str] = []
    waits_for: list[str] = []
    attempts: int = 0
    evidence: list[int] = []
    blocked: str = ""
    undecided: int = 0
    claimed: bool = False
    before: list[str] = []
    outcome: str = ""
    notes: list[str] = []

    @property
    def held_before(self) -> bool:
        """True when all that decides it passed before the work, too."""
        return bool(self.before) and set(self.before) == {PASSED}


class PhaseView(msgspec.Struct, frozen=True, kw_only=True):
    """A phase of the plan; a plan without phases is one phase without a name. ``gate`` is why it needs a person's
    word, if it does; ``held``: nothing of it goes on before that word, ``opened``: it was given. ``asks``: kinds of
    effect of which each call needs one.
    """

    name: str
    passed: int
    total: int
    gate: str = ""
    held: bool = False
    opened: bool = False
    asks: list[str] = []


class PlanBoard(msgspec.Struct, frozen=True, kw_only=True):
    """Where a plan stands: ``phase`` is the current one (None: nothing is left), ``at`` the entry that is worked on,
    ``next`` the one that comes when none is (both may be empty), ``steps`` those the agent set itself for this phase.
    """

    path: str
    passed: int
    phase: str | None
    phases: list[PhaseView]
    entries: list[EntryView]
    at: str = ""
    next: str = ""
    steps: list[str] = []


class CheckView(msgspec.Struct, frozen=True, kw_only=True):
    """A check on the files as they are; ``passed`` is None while it has not run on them.

    ``before``: what it said before the work: passed, failed or unknown; ``outcome``: now_passes, still_passes, passes
    or fails, empty for one that has not run.
    """

    command: str
    passed: bool | None
    before: str = UNKNOWN
    outcome: str = ""
    facts: list[str] = []
    """What it reads and that is not as at the start."""


class PlanShown(msgspec.Struct, frozen=True, kw_only=True):
    """The plan of a session (None without one), and every check that decides whether it is done."""

    plan: PlanBoard | None
    checks: list[CheckView]
