"""Every event a session log can hold, as one table of frozen structs.

A log line is an envelope (``Record``) around one body; the keeper treats bodies as bytes, everybody else decodes them
here. Money is in integer nano-USD (1e-9 USD), times are UTC RFC 3339 with milliseconds (display only; order is
``seq``). Unknown types decode to `Unknown` and are kept: an older reader skips what a newer writer added.
"""

from __future__ import annotations

from typing import Any

import msgspec

from harness.events import earlier, tools
from harness.events.said import Part


class Body(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base of all event bodies; each subclass carries its log name in ``TYPE``."""

    TYPE = ""


class BlobRef(msgspec.Struct, frozen=True):
    """A payload stored beside the log: SHA-256 in hex, size in bytes, media type."""

    sha: str
    bytes: int
    media: str = "application/octet-stream"


class Caps(msgspec.Struct, frozen=True, omit_defaults=True):
    """Hard limits of one session; None = no limit of that kind."""

    usd_nano: int | None = None
    tokens: int | None = None
    wall_s: int | None = None
    tool_calls: int | None = None


class Usage(msgspec.Struct, frozen=True, omit_defaults=True):
    """Tokens of one model request; ``input`` excludes cache reads and writes."""

    input: int = 0
    cache_read: int = 0
    cache_write_5m: int = 0
    cache_write_1h: int = 0
    output: int = 0

    @property
    def total(self) -> int:
        return self.input + self.cache_read + self.cache_write_5m + self.cache_write_1h + self.output

    @property
    def cache_hit(self) -> float | None:
        """The share of the input that came from the cache; None without any input."""
        given = self.total - self.output
        return self.cache_read / given if given else None

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            self.input + other.input,
            self.cache_read + other.cache_read,
            self.cache_write_5m + other.cache_write_5m,
            self.cache_write_1h + other.cache_write_1h,
            self.output + other.output,
        )


class By(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who did it: peer credentials of the socket and the kind of client (``tui``, ``cli``, ``policy`` …)."""

    client: str = ""
    uid: int = -1
    pid: int = -1


# -- session ---------------------------------------------------------------------------------------


class SessionIntent(Body, frozen=True, kw_only=True):
    """The launch spec, durable before anything is created for the session."""

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
    caps: Caps = Caps()
    max_rounds: int = 5
    host: str = ""
    protect: list[str] = []
    """Patterns of further files that decide whether the work is done."""
    free: list[str] = []
    """Patterns of files that the agent may change although they would be protected."""
    plan: str = ""
    """The plan in the repository whose criteria are checked, beside ``checks``."""


class SessionCreated(Body, frozen=True, kw_only=True):
    """The worktree stands; ``base`` is the commit it started from."""

    TYPE = "session.created"
    base: str
    worktree: str
    branch: str
    dirty: int = 0


class SessionDesired(Body, frozen=True, kw_only=True):
    """What the user wants: ``running``, ``paused`` or ``stopped``; durable before it is acted on."""

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


class SessionEnded(Body, frozen=True, kw_only=True):
    """Terminal until somebody continues it: ``done`` (``verified`` when every check passed), ``failed`` or
    ``stopped``.
    """

    TYPE = "session.ended"
    outcome: str
    reason: str = ""
    verified: bool = False
    summary: str = ""


class SessionContinued(Body, frozen=True, kw_only=True):
    """An ended session goes on: the one record that lifts an end, and with it a stop.

    ``rounds`` per instruction (0 = as before); ``caps`` and ``checks`` are all that hold from now on (None = as
    before).
    """

    TYPE = "session.continued"
    rounds: int = 0
    caps: Caps | None = None
    checks: list[str] | None = None
    by: By = By()


class LeaseGranted(Body, frozen=True, kw_only=True):
    """A brain incarnation owns the thinking; ``gen`` grows by one each time and fences older ones."""

    TYPE = "lease.granted"
    gen: int
    epoch: int
    pid: int = 0
    start: int = 0
    boot: str = ""


class LeaseEnded(Body, frozen=True, kw_only=True):
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
    """A torn tail was cut at ``at`` and kept in ``file``."""

    TYPE = "log.recovered"
    at: int
    bytes: int
    sha: str
    file: str


class Quarantined(Body, frozen=True, kw_only=True):
    """Restarts hit their limit; nothing starts again until the user resumes."""

    TYPE = "session.quarantined"
    part: str
    reason: str
    restarts: int


# -- conversation ----------------------------------------------------------------------------------


class UserMessage(Body, frozen=True, kw_only=True):
    """Text given to the model as the user's turn: ``goal``, ``human`` (typed by the user), ``harness`` (failed checks,
    nudges).
    """

    TYPE = "user.message"
    text: str
    origin: str = "human"
    by: By = By()


class ModelRequest(Body, frozen=True, kw_only=True):
    """One attempt is about to be sent; its worst case is reserved under ``reservation``.

    ``delivers`` are call ids whose results it carries; ``layers`` says about how many tokens of it are what.
    """

    TYPE = "model.request"
    request_id: str
    attempt: int
    model: str
    reservation: str
    reserved_nano: int
    est_input: int
    max_tokens: int
    upto_seq: int
    delivers: list[str] = []
    layers: dict[str, int] = {}


class ModelMessage(Body, frozen=True, kw_only=True):
    """A complete reply, every call of it whole; ``stop`` is one of `said.STOPS`.

    Its parts stand inline or in a blob (a JSON array).
    """

    TYPE = "model.message"
    request_id: str
    message_id: str
    model: str
    stop: str
    usage: Usage
    cost_nano: int
    parts: list[Part] | None = None
    parts_blob: BlobRef | None = None
    price_source: str = ""
    ms: int = 0


class ModelFailed(Body, frozen=True, kw_only=True):
    """An attempt ended without a usable reply. ``usage`` is what it surely cost; None = nobody knows, so it counts in
    full.

    ``kind``: auth, rate_limit, spend_limit, overloaded, server, network, cut, max_tokens, too_large, invalid,
    model_unknown, redirect, refused, other.
    """

    TYPE = "model.failed"
    request_id: str
    attempt: int
    kind: str
    message: str
    status: int = 0
    retry_in_s: float | None = None
    usage: Usage | None = None


# -- what a request shows of the log ------------------------------------------------------------------


class ContextCleared(Body, frozen=True, kw_only=True):
    """Results and large inputs of the turns before record ``before`` stand in their short forms from now on.

    ``tokens`` were measured when it was decided, ``after`` is foreseen; ``trigger`` says why in words.
    """

    TYPE = "context.cleared"
    before: int
    tokens: int
    after: int
    trigger: str


class ContextReset(Body, frozen=True, kw_only=True):
    """The context begins anew: the goal, this hand-off, then what was said from record ``keep`` on."""

    TYPE = "context.reset"
    keep: int
    handoff: str
    tokens: int
    after: int
    trigger: str


# -- the stages of one call -------------------------------------------------------------------------


class ToolProposed(Body, frozen=True, kw_only=True):
    """The model (or the harness, for ``check``) wants one effect.

    ``call_id`` is ``c<seq>.<i>``, strictly increasing; ``ref`` is the agent's own name for the call, empty for the
    harness's.
    """

    TYPE = "tool.proposed"
    call_id: str
    tool: str
    ref: str
    input: dict[str, Any] | None = None
    input_blob: BlobRef | None = None
    claim: str = ""

    @property
    def by_harness(self) -> bool:
        """True for a done criterion that the harness runs; a model that calls a tool of that name has proved
        nothing.
        """
        return self.tool == tools.CHECK and not self.ref


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
    action: dict[str, Any] | None = None
    action_blob: BlobRef | None = None


class ApprovalRequested(Body, frozen=True, kw_only=True):
    """A question for the human.

    ``kind``: as in `harness.events.request`. ``options`` are the only decisions accepted.
    """

    TYPE = "approval.requested"
    approval_id: str
    kind: str
    title: str
    options: list[str]
    call_id: str = ""
    action_hash: str = ""
    risk: str = "medium"
    detail: dict[str, Any] = {}


class ApprovalDecided(Body, frozen=True, kw_only=True):
    """``decision``: allow, allow_edited, deny, answer, raise, finish, stop, done, failed, unknown, retry, keep. Used
    once.
    """

    TYPE = "approval.decided"
    approval_id: str
    decision_id: str
    decision: str
    call_id: str = ""
    action_hash: str = ""
    message: str = ""
    edited: dict[str, Any] | None = None
    value: int | None = None
    by: By = By()
    shown_hash: str = ""


class ApprovalStale(Body, frozen=True, kw_only=True):
    """What was approved no longer is what would run; ``difference`` says where. The call is judged again."""

    TYPE = "approval.stale"
    approval_id: str
    call_id: str
    difference: list[str]


class ApprovalWithdrawn(Body, frozen=True, kw_only=True):
    TYPE = "approval.withdrawn"
    approval_id: str
    why: str


class ApprovalDeferred(Body, frozen=True, kw_only=True):
    TYPE = "approval.deferred"
    approval_id: str
    until: str = ""


class ToolStarted(Body, frozen=True, kw_only=True):
    """Durable before the effect. ``effect``: read, reversible, contained, irreversible."""

    TYPE = "tool.started"
    call_id: str
    action_hash: str
    effect: str
    decision_id: str = ""
    attempt: int = 1
    pre: dict[str, Any] = {}
    snapshot: str = ""
    """The state of the worktree just before, in the vault; empty when the call changes no file."""
    left_out: int = 0
    """Things in the worktree whose content that snapshot does not hold; the first are named."""
    left_out_names: list[str] = []
    worked: int = 0
    """Names in the worktree, and HEAD, that became another thing since the snapshot of the call before; what tools make
    by themselves is not counted.
    """


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


class ToolInDoubt(Body, frozen=True, kw_only=True):
    """Started, outcome unknown."""

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


# -- done criteria ---------------------------------------------------------------------------------


class CheckVerdict(Body, frozen=True, kw_only=True):
    """Whether the result of a check counts, by the supervisor. ``why`` it does not although it exited with 0.

    ``ran`` tests had an outcome, ``excused`` were skipped or expected to fail; None when its output tells of none.
    """

    TYPE = "check.verdict"
    call_id: str
    command: str
    passed: bool
    why: str = ""
    ran: int | None = None
    excused: int | None = None


class ViolatedFile(msgspec.Struct, frozen=True):
    """``how``: changed, deleted, replaced, shadows (a new file that would be read first), touched. ``sha`` is what the
    agent left there.
    """

    path: str
    how: str
    sha: str = ""


class RatchetViolation(Body, frozen=True, kw_only=True):
    """Files that decide whether the work is done are not as they were at the start; they are put back before a check
    runs. What was there lies in the session's folder, under ``aside/<violation_id>/<index>``.
    """

    TYPE = "ratchet.violation"
    violation_id: str
    call_id: str
    files: list[ViolatedFile]
    protected: int = 0
    """So many files are protected in all."""


class RatchetRestored(Body, frozen=True, kw_only=True):
    """The originals stand again; with ``allowed``, what a person allowed does. ``refused`` says what could not be
    brought there.
    """

    TYPE = "ratchet.restored"
    violation_id: str
    restored: int
    refused: list[str] = []
    allowed: bool = False


class RatchetAnswered(Body, frozen=True, kw_only=True):
    """A person's word on violations: ``allow`` (their content counts from now on) or ``keep`` (the originals do)."""

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


class PlanLoaded(Body, frozen=True, kw_only=True):
    """The plan as the commit has it that the session began from; ``form``: features, userStories or tasks."""

    TYPE = "plan.loaded"
    path: str
    form: str
    entries: list[PlanEntry]


class PlanFlipped(Body, frozen=True, kw_only=True):
    """The harness sets ``passes`` of an entry, by what it saw in ``calls``; nobody else does."""

    TYPE = "plan.flipped"
    entry: str
    passes: bool
    why: str
    calls: list[str]


class PlanRestored(Body, frozen=True, kw_only=True):
    """The agent changed the plan; ``did`` says what, one sentence each. It is as the harness wrote it again."""

    TYPE = "plan.restored"
    call_id: str
    did: list[str]


# -- undo ------------------------------------------------------------------------------------------


class UndoStarted(Body, frozen=True, kw_only=True):
    """The worktree is about to become what it was in ``snapshot``, just before ``call_id`` (a call or an earlier undo);
    ``before`` is kept.
    """

    TYPE = "undo.started"
    undo_id: str
    call_id: str
    snapshot: str
    before: str
    by: By = By()


class UndoEnded(Body, frozen=True, kw_only=True):
    """``written`` and ``removed`` count names; ``refused`` says what could not be brought back; ``error`` = nothing or
    not all was done.
    """

    TYPE = "undo.ended"
    undo_id: str
    call_id: str
    written: int = 0
    removed: int = 0
    refused: list[str] = []
    refused_count: int = 0
    error: str = ""


# -- money, plan, trouble --------------------------------------------------------------------------


class BudgetReached(Body, frozen=True, kw_only=True):
    """A cap would be passed by the next request or call. ``cap``: session.usd, session.tokens, session.wall,
    session.calls, day.usd, fleet.usd …

    ``day`` is the window of a cap of the day.
    """

    TYPE = "budget.reached"
    cap: str
    used: int
    limit: int
    need: int = 0
    day: str = ""


class CapsRaised(Body, frozen=True, kw_only=True):
    """The session's caps from now on; with ``cap``, a cap above it is raised to ``limit`` (over the configured
    ``base``, for ``day``), too.

    ``decision_id`` names the decision behind such a raise. The ledger follows this record, so a raise is decided before
    it holds.
    """

    TYPE = "caps.raised"
    caps: Caps
    by: By = By()
    cap: str = ""
    limit: int = 0
    base: int = 0
    day: str = ""
    decision_id: str = ""


class FinishUp(Body, frozen=True, kw_only=True):
    """The human lets the session end with one last, capped reply."""

    TYPE = "budget.finish_up"
    allowance_nano: int


class BreakerOpened(Body, frozen=True, kw_only=True):
    TYPE = "breaker.opened"
    kind: str
    count: int
    detail: str = ""


class TimePassed(Body, frozen=True, kw_only=True):
    """Seconds that nobody worked in though the clock moved on: the machine slept, or its clock was set (back, when
    negative).
    """

    TYPE = "time.passed"
    seconds: float
    why: str = ""


class HarnessNote(Body, frozen=True, kw_only=True):
    """Something the harness wants on record: ``level`` info, warning or error."""

    TYPE = "harness.note"
    level: str
    text: str
    component: str = ""


class Unknown(Body, frozen=True, kw_only=True):
    """A type this version does not know, kept as it was."""

    TYPE = "?"
    type: str
    data: dict[str, Any]


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
_any = msgspec.json.Decoder(dict[str, Any])


def decode(line: bytes) -> Record:
    """Decode one log line; a body that this version cannot understand is kept as `Unknown`.

    Raises msgspec.DecodeError (ValidationError included) on a line that is no event.
    """
    try:
        return _decoded(line)
    except UnicodeDecodeError as exc:
        raise msgspec.DecodeError(f"bytes that are no text: {exc}") from exc


def _decoded(line: bytes) -> Record:
    env = _envelope.decode(line)
    decoder = _bodies.get(env.type)
    body: Body
    try:
        body = Unknown(type=env.type, data=_any.decode(env.data)) if decoder is None else decoder.decode(env.data)
    except msgspec.ValidationError:
        body = _earlier(env.type, _any.decode(env.data))
    return Record(env.seq, env.ts, env.actor, env.gen, body)


def _earlier(kind: str, data: dict[str, Any]) -> Body:
    """A body in the words of an earlier version, or one that nobody here understands."""
    now = earlier.in_todays_words(kind, data)
    if now is not None:
        try:
            return msgspec.convert(now, TYPES[kind])
        except msgspec.ValidationError:
            pass
    return Unknown(type=kind, data=data)


def to_wire(body: Body) -> dict[str, Any]:
    """``{"type", "data"}`` as the keeper's ``append`` takes it."""
    return {"type": body.TYPE, "data": msgspec.to_builtins(body)}
