"""What the supervisor answers, one record for each operation: encoded where it answers, decoded by whoever asked, so
that screen, command line and supervisor mean the same. Replies that are made of a concept's own views stand beside
those (`…_views.py`).
"""

from __future__ import annotations

from typing import Literal

import msgspec

from harness.domain.steered import Steered
from harness.events.plan.masked_check_events import MaskedCheck
from harness.views.archived import Archived
from harness.views.session_views import ApprovalView, FleetView, SessionRow, TroubleView


class Done(msgspec.Struct, frozen=True):
    """It is done."""


DONE = Done()


class Hello(msgspec.Struct, frozen=True, kw_only=True):
    """Who answers: protocol, epoch of the fleet, version, process, and state folder."""

    proto: int
    epoch: int
    version: str
    pid: int
    state: dict[str, str | int]


# -- the whole fleet -----------------------------------------------------------------------------------


class Sessions(msgspec.Struct, frozen=True, kw_only=True):
    """Every session, and the totals."""

    rows: list[SessionRow]
    fleet: FleetView


class RowsPush(msgspec.Struct, frozen=True, kw_only=True):
    """Rows that changed, ids of sessions that are gone, and the totals."""

    push: Literal["rows"] = "rows"
    rows: list[SessionRow]
    gone: list[str]
    fleet: FleetView


class ApprovalsPush(msgspec.Struct, frozen=True, kw_only=True):
    """The whole queue."""

    push: Literal["approvals"] = "approvals"
    approvals: list[ApprovalView]


class SandboxTest(msgspec.Struct, frozen=True):
    """One forbidden act that the sandbox's self-test tried."""

    name: str
    ok: bool
    detail: str = ""


class LimitHeld(msgspec.Struct, frozen=True):
    """How one resource of a call is limited here. ``hard``: the kernel itself refuses more; ``needs``: what that
    would take.
    """

    what: str
    limit: str
    how: str
    holds: bool
    hard: bool
    needs: str = ""


class SandboxTested(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the sandbox's self-test; ``reason`` says why tools do not run, empty when they do."""

    ok: bool
    reason: str = ""
    bwrap: str = ""
    origin: str = ""
    version: str = ""
    landlock_abi: int = 0
    seccomp: bool = False
    tests: list[SandboxTest] = []
    limits: list[LimitHeld] = []

    @property
    def unheld(self) -> str:
        """Which limits this machine cannot hold strictly, and why; empty when it holds all that are set."""
        if not self.ok:
            return f"none of them, since the sandbox does not work ({self.why})"
        return "; ".join(f"{one.what} ({one.limit}): {one.how}; needs {one.needs}" for one in self.limits if one.needs)

    @property
    def why(self) -> str:
        """Why it does not hold, in words."""
        failed = [f"{test.name}: {test.detail}" for test in self.tests if not test.ok]
        return self.reason or "; ".join(failed) or "the sandbox does not hold"


class PolicyInForce(msgspec.Struct, frozen=True, kw_only=True):
    """Where the policy comes from, and its hash."""

    source: str
    hash: str
    rules: int


class ConfigInForce(msgspec.Struct, frozen=True, kw_only=True):
    """Where the configuration comes from, and the model of a launch that names none."""

    file: str
    model: str


class Status(msgspec.Struct, frozen=True, kw_only=True):
    """How the fleet and its supervisor stand."""

    fleet: FleetView
    sandbox: SandboxTested
    policy: PolicyInForce
    config: ConfigInForce
    problems: list[str]
    troubles: list[TroubleView]


class LogChecked(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a log is intact; ``problem`` says where not."""

    ok: bool
    records: int
    problem: str


class SessionChecked(LogChecked, frozen=True, kw_only=True):
    """Whether a session's log is intact."""

    sid: str
    name: str


class Verified(msgspec.Struct, frozen=True, kw_only=True):
    """The logs that were checked; without the ledger when one session was asked about."""

    sessions: list[SessionChecked]
    ledger: LogChecked | None = None


class ViolationView(msgspec.Struct, frozen=True, kw_only=True):
    """A broken invariant, of one session unless ``sid`` is empty."""

    id: str
    sid: str
    text: str


class Invariants(msgspec.Struct, frozen=True, kw_only=True):
    """Every invariant that does not hold."""

    violations: list[ViolationView]


class Halted(msgspec.Struct, frozen=True, kw_only=True):
    """The supervisor is leaving; the stop of these sessions could not be recorded."""

    unrecorded: list[str]


# -- one session ---------------------------------------------------------------------------------------


class Launched(msgspec.Struct, frozen=True, kw_only=True):
    """A session began."""

    sid: str
    name: str
    warnings: list[str] = []
    masked: list[MaskedCheck] = []
    """Checks that hide their exit code, or run a program that the agent writes; each is among the warnings too."""


class ForkBegun(Launched, frozen=True, kw_only=True):
    """A session began from a checkpoint."""

    checkpoint_id: str


class Starts(msgspec.Struct, frozen=True, kw_only=True):
    """Branches and commits that a session may begin from, newest first."""

    starts: list[str]


class PhraseOffer(msgspec.Struct, frozen=True, kw_only=True):
    """A phrase that ``count`` criteria use and no command decides; ``guess`` is a command, or empty."""

    text: str
    count: int
    guess: str = ""


class PhrasesLook(msgspec.Struct, frozen=True, kw_only=True):
    """Phrases that a person may bind to commands before a launch. ``file`` is the digest of the repository's own
    phrases while they do not count, ``offered`` what they would bind; ``bound`` is what counts.
    """

    unbound: list[PhraseOffer]
    file: str = ""
    offered: dict[str, str] = {}
    bound: dict[str, str] = {}


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """``note`` says when the agent will read the message, if not at its next turn."""

    note: str


class Wished(msgspec.Struct, frozen=True, kw_only=True):
    """``note`` says what a resumed session still waits for; empty when it goes on."""

    note: str = ""


class WentOn(msgspec.Struct, frozen=True, kw_only=True):
    """An ended session goes on."""

    sid: str
    name: str


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    """``kept`` are refs that hold the work, ``lost`` is what was not saved; ``archived``: its log stays."""

    kept: list[str]
    lost: list[str]
    checkpoints: int
    archived: bool


class ArchivedSessions(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of removed sessions."""

    rows: list[Archived]


class Purged(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing is kept of the session any more."""

    sid: str


class SessionShown(msgspec.Struct, frozen=True, kw_only=True):
    """One session; ``state`` is its folded state as JSON, ``folder`` where its log is."""

    row: SessionRow
    state: dict[str, object]
    approvals: list[ApprovalView]
    folder: str


class Snoozed(msgspec.Struct, frozen=True, kw_only=True):
    """These alarms do not ring before ``until``."""

    name: str
    alarms: list[str]
    until: str


class FileDiff(msgspec.Struct, frozen=True):
    """A file compared with the base; counts are None for binary files."""

    path: str
    status: str
    added: int | None
    removed: int | None


class Compared(msgspec.Struct, frozen=True, kw_only=True):
    """A session's diff. ``seen`` stands for what its reader has seen; ``touches`` names where it changes how tests
    are found, run, compared or ended.
    """

    files: list[FileDiff]
    patch: str
    truncated: bool
    seen: str
    touches: list[Steered] = []


class LogPiece(msgspec.Struct, frozen=True, kw_only=True):
    """Raw records. ``next`` is the number after the last of them, ``head`` the newest record (-1: none); ``closed``:
    nobody was writing the log.
    """

    lines: list[str]
    next: int
    head: int
    closed: bool


class PayloadPiece(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of a payload of so many ``bytes``, in base64."""

    data: str
    offset: int
    bytes: int


# -- the queue -----------------------------------------------------------------------------------------


class ApprovalList(msgspec.Struct, frozen=True, kw_only=True):
    """Every open request, oldest first."""

    approvals: list[ApprovalView]


class Approval(msgspec.Struct, frozen=True, kw_only=True):
    """One request."""

    approval: ApprovalView


class Changes(msgspec.Struct, frozen=True, kw_only=True):
    """A piece of the comparison behind a card, which has so many ``characters`` in all."""

    text: str
    offset: int
    characters: int
    sha256: str


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """The decision is on record."""

    decision_id: str


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What became of a decision that lets a call run. ``became``: started, ended (with this ``status``), stale (nothing
    ran: what it depends on is different now, by these ``difference``s, and the request ``again`` asks anew), or
    pending.
    """

    became: str
    status: str = ""
    again: str = ""
    difference: list[str] = []
