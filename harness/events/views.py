"""What a client sees of a session: small frozen structs derived from the fold and the supervisor's knowledge of who is
alive.

Text fields hold untrusted text as it is; whoever shows them passes `untrusted.to_display`.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from harness.events import trouble
from harness.events.alarm_events import AlarmRaised
from harness.events.endpoints import EndpointView
from harness.events.row_state import Liveness, first_request, state_of, without_criterion, words_of
from harness.events.session_state import Context, SessionState
from harness.events.words import parse_ts

NEEDS_YOU = "needs you"
"""It has an open request."""
ERRORS = "errors"
"""Something is wrong that asks nobody, and does not end by itself; an item of the queue all the same (`needs`)."""
RUNNING = "running"
REVIEW = "to review"
"""It says it is done, and its work still lies on its own branch."""
DONE = "done"
GROUPS = (NEEDS_YOU, ERRORS, RUNNING, REVIEW, DONE)
"""In the order in which they deserve to be looked at."""
_JOB = 160
NOT_SHOWN = "\\ NOT SHOWN HERE: "
"""A line of `ApprovalView.diff` that begins so says what it leaves out.

No line of a file can: each has ``+``, ``-`` or a blank before it.
"""
NOT_COMPARED = "\\ NOT COMPARED: "
"""A line that begins so says what was not compared; no line of a file can, as above."""


class ApprovalView(msgspec.Struct, frozen=True, omit_defaults=True):
    """One open request, with all that its card is rendered from. ``action`` is the canonical action (kind ``tool``)."""

    approval_id: str
    sid: str
    session_name: str
    kind: str
    title: str
    options: list[str]
    risk: str
    ts: str
    seq: int
    call_id: str = ""
    tool: str = ""
    action_hash: str = ""
    action: dict[str, Any] | None = None
    effects: list[str] = []
    rule: str = ""
    reason: str = ""
    claim: str = ""
    diff: str = ""
    detail: dict[str, Any] = {}
    deferred: str | None = None
    repo: str = ""
    branch: str = ""
    alike: str = ""
    """Equal for requests that are so similar that they form one item; empty for one that stands alone."""
    same: str = ""
    """Equal for requests that differ in nothing but their call and the state of their worktree; empty for what is
    critical, which is decided one by one.
    """


class SessionRow(msgspec.Struct, frozen=True, omit_defaults=True):
    """One row of the floor. ``state`` is one of design §8; ``source``/``evidence`` say why it was chosen."""

    sid: str
    name: str
    state: str
    group: str
    detail: str
    since: str
    repo: str = ""
    branch: str = ""
    worktree: str = ""
    model: str = ""
    goal: str = ""
    created: str = ""
    last_ts: str = ""
    last_event: str = ""
    seq: int = -1
    spent_nano: int = 0
    """What counts as spent against its cap; ``unknown_nano`` of it is the worst case of requests of unknown outcome."""
    reserved_nano: int = 0
    unknown_nano: int = 0
    cap_nano: int | None = None
    tokens: int = 0
    requests: int = 0
    tool_calls: int = 0
    context: str = ""
    """What its requests hold, in words."""
    context_tokens: int = 0
    context_working: int = 0
    """Tokens that its requests are kept within; 0 = nobody said."""
    layers: dict[str, int] = {}
    """Of its newest answered request: tokens by `harness.events.layers`."""
    checks_passed: int = 0
    checks_total: int = 0
    plan_passed: int = 0
    plan_total: int = 0
    merged: str = ""
    """The branch that holds its work."""
    no_criterion: bool = False
    """Nothing but its agent's word decides whether it is done."""
    approvals: list[str] = []
    jobs: list[str] = []
    """Those that run, oldest first, each as ``j1: its command``."""
    source: str = "event log"
    evidence: str = ""
    verified: bool = False
    price: str = ""
    desired: str = "running"
    ended: bool = False
    asks: str = ""
    """The kind of its request that comes first (see `Request`); empty: it has none."""
    files: int | None = None
    lines_added: int = 0
    lines_removed: int = 0
    """What it changed against its base, as counted lately; ``files`` None: nobody counted."""
    burned: list[int] = []
    burned_step: int = 0
    """Of what goes on: nano-USD by stretches of time, up to this one (`harness.events.burned`)."""
    alarms: list[str] = []
    """What rings: why a session that runs wants a look, in words."""
    put_off: str = ""
    """Until when a person wants no reminder of what is wrong; empty: nobody put it off, or the time is over."""
    next: str = ""
    """What happens next by itself, in words; with ``do``, what a person can do about it, by the key of ``action`` or
    the ``command``.
    """
    do: str = ""
    action: str = ""
    command: str = ""


class TroubleView(msgspec.Struct, frozen=True, omit_defaults=True):
    """Something that is wrong right now.

    ``about``: the session's name, or what of the fleet; ``cause`` is untrusted. ``person``: it waits for somebody.
    """

    about: str
    headline: str
    next: str
    do: str = ""
    command: str = ""
    cause: str = ""
    person: bool = False
    sid: str = ""


class FleetView(msgspec.Struct, frozen=True, omit_defaults=True):
    """Totals over all sessions and the health of the supervisor itself."""

    sessions: int = 0
    needs_you: int = 0
    errors: int = 0
    running: int = 0
    review: int = 0
    done: int = 0
    spent_today_nano: int = 0
    spent_total_nano: int = 0
    reserved_nano: int = 0
    """Held for requests under way; ``reserved_today_nano`` of it counts for today. The ``unknown_…`` are parts of what
    is spent, as in a row.
    """
    reserved_today_nano: int = 0
    unknown_today_nano: int = 0
    unknown_total_nano: int = 0
    day_cap_nano: int | None = None
    fleet_cap_nano: int | None = None
    epoch: int = 0
    fence: str = ""
    warnings: list[str] = []
    troubles: tuple[TroubleView, ...] = ()
    """What is wrong with the fleet itself, the worst first; an endpoint that does not answer is among `endpoints`."""
    endpoints: tuple[EndpointView, ...] = ()


def troubled(made: SessionRow, found: trouble.Trouble, *, held: bool) -> SessionRow:
    """The row of a session that something holds up.

    What ends by itself is no failure, and never hides what a person is asked.
    """
    words = trouble.held(found) if held else found.words
    if not (words.person or words.mend) and made.state == "waiting":
        return made
    state = "limited"
    group = RUNNING
    if words.person or words.mend:
        state = "failed" if words.person else "parked"
        group = ERRORS
    evidence = found.cause or made.evidence
    return _say(
        msgspec.structs.replace(
            made, state=state, group=group, detail=words.headline, source="supervisor", evidence=evidence
        ),
        words,
    )


def reminded(made: SessionRow, now: float) -> SessionRow:
    """The row without a putting off that is over by ``now`` (seconds since the epoch), or that nothing needs."""
    if not made.put_off:
        return made
    holds = made.group == ERRORS and not made.alarms and (parse_ts(made.put_off) or 0.0) > now
    return made if holds else msgspec.structs.replace(made, put_off="")


def _say(made: SessionRow, words: trouble.Words) -> SessionRow:
    fill = {name: getattr(words, name).replace("{sid}", made.sid) for name in ("next", "do", "command")}
    return msgspec.structs.replace(made, action=words.action, **fill)


_GROUP_OF = {"waiting": NEEDS_YOU, "failed": ERRORS, "unknown": ERRORS, "done": REVIEW, "stopped": DONE}


def counted(base: FleetView, groups: Counter[str]) -> FleetView:
    """``base`` with how many sessions there are in each group."""
    return msgspec.structs.replace(
        base,
        sessions=groups.total(),
        needs_you=groups[NEEDS_YOU],
        errors=groups[ERRORS],
        running=groups[RUNNING],
        review=groups[REVIEW],
        done=groups[DONE],
    )


def context_of(c: Context) -> str:
    """The size of a session's context, and what was done to keep it small."""
    if not c.tokens:
        return ""
    of = f" of {c.working:,} to work in" if c.working else ""
    times = [
        f" · {words} {count} time{'s' if count != 1 else ''}"
        for words, count in (("cleared", c.clearings), ("begun anew", c.resets), ("compacted", c.compactions))
        if count
    ]
    return f"{c.tokens:,} tokens{of}" + "".join(times)


def row(
    sid: str,
    s: SessionState,
    live: Liveness,
    *,
    spent_nano: int | None = None,
    reserved_nano: int = 0,
    unknown_nano: int = 0,
    price: str = "",
    tokens: int = 0,
    now: float = 0.0,
) -> SessionRow:
    """The row of one session; money from the ledger when given, else from the log. ``now`` (seconds since the epoch)
    decides which alarms ring that were put off.
    """
    state, detail, evidence = state_of(s, live)
    i = s.intent
    since = s.ended_ts or s.last_ts
    if s.approvals:
        since = min(a.ts for a in s.approvals.values())
    elif s.doing:
        since = max(d.ts for d in s.doing.values())
    elif s.jobs.running and state == "running" and not live.brain:
        since = min(job.ts for job in s.jobs.running.values())
    asked = first_request(s) if state == "waiting" else None
    made = SessionRow(
        sid=sid,
        name=s.name or sid,
        state=state,
        group=DONE if s.ended is not None and s.merging.merged else _GROUP_OF.get(state, RUNNING),
        detail=detail,
        since=since,
        repo=i.repo if i else "",
        branch=i.branch if i else "",
        worktree=i.worktree if i else "",
        model=i.model if i else "",
        goal=i.goal if i else "",
        created=s.first_ts,
        last_ts=s.last_ts,
        last_event=s.last_event,
        seq=s.seq,
        spent_nano=s.spent_nano if spent_nano is None else spent_nano,
        reserved_nano=reserved_nano,
        unknown_nano=unknown_nano,
        cap_nano=s.caps.usd_nano,
        tokens=s.usage.total if spent_nano is None else tokens,
        requests=s.requests,
        tool_calls=s.tool_calls,
        context=context_of(s.context),
        context_tokens=s.context.tokens,
        context_working=s.context.working,
        layers=s.context.layers,
        checks_passed=s.checks_passed,
        checks_total=len(s.checks),
        plan_passed=s.plan.passed if s.plan else 0,
        plan_total=len(s.plan.entries) if s.plan else 0,
        merged=s.merging.merged,
        no_criterion=without_criterion(s),
        approvals=list(s.approvals),
        jobs=[f"{name}: {job.what[:_JOB]}" for name, job in s.jobs.running.items()],
        evidence=evidence,
        verified=s.ended.verified if s.ended else False,
        price=price,
        desired=s.desired,
        ended=s.terminal,
        asks=asked.kind if asked is not None else "",
        burned=[] if s.terminal else list(s.burned.nano),
        burned_step=s.burned.step,
        put_off=s.alarms.put_off,
    )
    words = words_of(s, state)
    if words is not None:
        return _say(made, words)
    ringing = s.alarms.ringing(now) if state in ("running", "starting") else []
    return _alarmed(made, ringing) if ringing else made


def _alarmed(made: SessionRow, ringing: list[AlarmRaised]) -> SessionRow:
    """It runs, and wants a look."""
    first = ringing[0]
    rests_on = ", ".join(map(str, first.evidence))
    told = msgspec.structs.replace(
        made,
        group=ERRORS,
        detail=f"{first.words} · now {made.detail}",
        evidence=f"records {rests_on}" if rests_on else made.evidence,
        alarms=[one.words for one in ringing],
    )
    return _say(told, trouble.ALARM)
