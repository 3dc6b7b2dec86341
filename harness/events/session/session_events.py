"""Events of a session as a whole: its spec, its life, and the processes that hold it."""

from __future__ import annotations

import msgspec

from harness.domain.outcomes import JUDGED, NOT_VERIFIED, STILL_PASSES, VERIFIED
from harness.domain.states import State
from harness.events.body import Body, By, Caps
from harness.events.plan.contract_events import ContractWanted
from harness.events.plan.evaluation_events import JudgeWanted
from harness.events.plan.iteration_events import Ways
from harness.events.session.role_events import PinnedRole
from harness.events.work.checkpoint_events import Forked


class SessionIntent(Body, frozen=True, kw_only=True):
    """What the launch asked for, durable before anything is made for the session."""

    TYPE = "session.intent"
    name: str
    goal: str
    repo: str
    branch: str
    worktree: str
    model: str
    base_url: str = ""
    credential: str = ""
    checks: list[str] = []
    given: list[str] = []
    """Those of them that were given for the whole; the others are a plan's."""
    caps: Caps = Caps()
    max_rounds: int = 5
    evidence_rounds: int = 0
    """How often the agent is asked for evidence before its word alone ends the work."""
    host: str = ""
    protect: list[str] = []
    """Patterns of further files that decide whether the work is done."""
    free: list[str] = []
    """Patterns of files that the agent may change although they would be protected."""
    plan: str = ""
    """The plan in the repository whose criteria are checked, beside ``checks``."""
    ways: Ways = Ways()
    """How it goes through that plan."""
    draft: str = ""
    """The plan that the session writes first, from its goal; with ``draft_accepted`` nobody is asked about it."""
    draft_accepted: bool = False
    gates: list[str] = []
    """Gates of its phases beyond those of the file, each ``PHASE=reason``."""
    phrases: dict[str, str] = {}
    """Criteria of its plan in these words are decided by these commands."""
    judge: JudgeWanted | None = None
    contract: ContractWanted | None = None
    """Nobody works before planner and evaluator agreed on one."""
    roles: list[PinnedRole] = []
    """Who plays which part, word for word as it was at the launch."""
    forked: Forked | None = None
    """Where it began, when that is another session."""
    start: str = ""
    """The commit that it begins from, when one was named; else the repository's HEAD as its worktree is made."""


class SessionCreated(Body, frozen=True, kw_only=True):
    """The worktree is made; ``base`` is the commit that it began from."""

    TYPE = "session.created"
    base: str
    worktree: str
    branch: str
    dirty: int = 0
    folder: str = ""
    """Where below the worktree commands run: the part of the repository that it was launched from."""


class SessionDesired(Body, frozen=True, kw_only=True):
    """What the person wants: ``running``, ``paused`` or ``stopped``; durable before it is acted on."""

    TYPE = "session.desired"
    state: str
    reason: str = ""
    by: By = By()


class SessionParked(Body, frozen=True, kw_only=True):
    """The brain left because there is nothing to think about: ``approval``, ``paused``, ``cap``, ``limited``, ``auth``,
    ``breaker``, ``error``, ``question`` (its reply ends in one; ``detail`` are its words), ``refusal`` (of the model;
    with its words).
    """

    TYPE = "session.parked"
    why: str
    detail: str = ""
    until: str = ""
    since: str = ""
    """``limited``: since when the endpoint is not to be asked."""
    verdict: str = ""
    """``question``: what the checks said of the work that it asks about, when all passed; ``verified`` and ``still`` as
    of an end, when nothing else was left to decide it.
    """
    verified: bool = False
    still: bool = False


class SessionEnded(Body, frozen=True, kw_only=True):
    """The session has ended, until somebody continues it: ``done``, ``failed`` or ``stopped``. ``verified``: every
    check passed on the originals, and at least one of them failed before the work; ``still``: every check passed, as
    each of them did before; ``judged``: a judge was satisfied.
    """

    TYPE = "session.ended"
    outcome: str
    reason: str = ""
    verified: bool = False
    still: bool = False
    judged: bool = False
    summary: str = ""

    @property
    def proof(self) -> str:
        """What shows that it is done, in one word; empty for what is not."""
        if self.outcome != State.DONE:
            return ""
        if self.judged:
            return JUDGED
        if self.verified:
            return VERIFIED
        return STILL_PASSES if self.still else NOT_VERIFIED

    def unproved(self, reason: str) -> SessionEnded:
        """The same, with nothing that shows it."""
        return msgspec.structs.replace(self, verified=False, still=False, judged=False, reason=reason)


class SessionContinued(Body, frozen=True, kw_only=True):
    """An ended session goes on; the only record that lifts an end or a stop.

    ``rounds`` per instruction (0 = as before); ``caps`` and ``checks`` are all that hold from now on (None = as
    before).
    """

    TYPE = "session.continued"
    rounds: int = 0
    caps: Caps | None = None
    checks: list[str] | None = None
    by: By = By()


class LeaseGranted(Body, frozen=True, kw_only=True):
    """A new agent process may write to the log; ``gen`` grows by one each time and shuts out older ones."""

    TYPE = "lease.granted"
    gen: int
    epoch: int
    pid: int = 0
    start: int = 0
    boot: str = ""


class LeaseEnded(Body, frozen=True, kw_only=True):
    """The agent's process is gone."""

    TYPE = "lease.ended"
    gen: int
    reason: str
    exit_code: int | None = None


class KeeperStarted(Body, frozen=True, kw_only=True):
    """A keeper opened the log; ``start`` is /proc field 22, ``boot`` the kernel's boot id."""

    TYPE = "keeper.started"
    pid: int
    start: int
    boot: str
    recovered: bool = False


class LogRecovered(Body, frozen=True, kw_only=True):
    """A torn end of the log was cut off at ``at`` and kept in ``file``."""

    TYPE = "log.recovered"
    at: int
    bytes: int
    sha: str
    file: str


class Quarantined(Body, frozen=True, kw_only=True):
    """A part of the session was restarted too often; it starts again when the person resumes the session."""

    TYPE = "session.quarantined"
    part: str
    reason: str
    restarts: int
