"""Events of a plan worked through one task after the other, each in a context of its own."""

from __future__ import annotations

import msgspec

from harness.events.body import Body

PER_TASK = "per-task"
PER_ITERATION = "per-iteration"
NEVER = "never"
FRESH = (PER_TASK, PER_ITERATION, NEVER)
"""When a context begins anew: for each attempt at a task, for each claim that it is done, or not by task at all."""

PASSED = "passed"
UNDECIDED = "undecided"
FAILED = "failed"
BLOCKED = "blocked"


class Ways(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a session goes about its work: ``fresh`` as above, ``attempts`` at each task, the seconds that ``init.sh``
    may take, whether the harness commits what a finished task left uncommitted, and the commands that run after edits,
    each within ``hook_s`` seconds.
    """

    fresh: str = NEVER
    attempts: int = 3
    setup_s: int = 300
    commit: bool = False
    hooks: list[str] = []
    hook_s: int = 60


class IterationStarted(Body, frozen=True, kw_only=True):
    """Attempt ``attempt`` at an entry of the plan begins in a context of its own, with this ``digest`` of all that
    stands, made by code. ``head``: the commit that the work stands on then.
    """

    TYPE = "iteration.started"
    n: int
    entry: str
    attempt: int
    digest: str
    head: str = ""


class IterationEnded(Body, frozen=True, kw_only=True):
    """``outcome``: passed, undecided (the agent says so and no check decides), failed, blocked (the agent says why)."""

    TYPE = "iteration.ended"
    n: int
    entry: str
    outcome: str
    reason: str = ""


class ApproachFailed(Body, frozen=True, kw_only=True):
    """An attempt at an entry failed: what was tried, in the agent's words, and what showed the failure."""

    TYPE = "approach.failed"
    entry: str
    what: str
    why: str


class EditsLooked(Body, frozen=True, kw_only=True):
    """Whether commands of the agent changed files since the last look, with the first names: then hooks after edits
    are due.
    """

    TYPE = "edits.looked"
    changed: bool
    names: list[str] = []


class SetupFound(Body, frozen=True, kw_only=True):
    """The agent added a setup script to the worktree; it runs before the next task."""

    TYPE = "setup.found"
    path: str


class HooksEnded(Body, frozen=True, kw_only=True):
    """Hooks after edits printed something, which the agent reads once, in its next request."""

    TYPE = "hooks.ended"
    text: str
    failed: int = 0


class ProgressKept(Body, frozen=True, kw_only=True):
    """The progress record after task ``n``, by its SHA-256. ``did``: what the agent had done to earlier entries,
    which stand again; ``by_harness``: it wrote none, so the harness did.
    """

    TYPE = "progress.kept"
    path: str
    n: int
    sha: str
    did: list[str] = []
    by_harness: bool = False


class PlanArchived(Body, frozen=True, kw_only=True):
    """The plan before this one, of another ``branch``, and its progress record were moved to this folder."""

    TYPE = "plan.archived"
    folder: str
    branch: str
    paths: list[str]
