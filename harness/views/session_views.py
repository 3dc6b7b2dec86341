"""What a client sees of a session: small frozen structs, and what follows from them alone. A client loads no fold for
them; `harness.views.rows` derives a row.

Text fields hold untrusted text as it is; whoever shows them passes `untrusted.to_display`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from harness.domain import problems
from harness.domain.endpoints import EndpointView
from harness.domain.states import State
from harness.domain.text.formatting import parse_ts

NEEDS_YOU = "needs you"
"""It has an open request."""
ERRORS = "errors"
"""Something is wrong that asks nobody, and does not end by itself; an item of the queue all the same (`needs`)."""
RUNNING = "running"
REVIEW = "to review"
"""It says it is done, and its work, as far as anybody counted, still lies on its own branch."""
DONE = "done"
GROUPS = (NEEDS_YOU, ERRORS, RUNNING, REVIEW, DONE)
"""In the order in which they deserve to be looked at."""
NOT_SHOWN = "\\ NOT SHOWN HERE: "
"""A line of `ApprovalView.diff` that begins so says what it leaves out.

No line of a file can: each has ``+``, ``-`` or a blank before it.
"""
NOT_COMPARED = "\\ NOT COMPARED: "
"""A line that begins so says what was not compared; no line of a file can, as above."""
NOTHING_THERE = "nothing there, or no plain file"
"""How the head of a comparison ends that names a side without a file."""


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
    action: dict[str, object] | None = None
    effects: list[str] = []
    rule: str = ""
    reason: str = ""
    claim: str = ""
    diff: str = ""
    detail: dict[str, object] = {}
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
    """A session's row on the floor. ``state`` is one of design §8; ``source``/``evidence`` say why it was chosen."""

    sid: str
    name: str
    state: str
    group: str
    detail: str
    since: str
    repo: str = ""
    branch: str = ""
    worktree: str = ""
    folder: str = ""
    """Where below its worktree commands run, when not at the top."""
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
    """Of its newest answered request: tokens by `harness.domain.request_layers`."""
    checks_passed: int = 0
    checks_total: int = 0
    plan_passed: int = 0
    plan_total: int = 0
    merged: str = ""
    """The branch that holds its work."""
    merged_commit: str = ""
    """What that branch stood on by then."""
    no_criterion: bool = False
    """Nothing but its agent's word decides whether it is done."""
    approvals: list[str] = []
    jobs: dict[str, str] = {}
    """Those that run, oldest first: their commands by their names."""
    source: str = "event log"
    evidence: str = ""
    proof: str = ""
    """What shows that it is done, in one word of `outcomes`; empty for one that is not."""
    verified: bool = False
    """Every check passes on the originals, and at least one of them failed before the work."""
    now_passing: int = 0
    """Checks that pass and failed before the work."""
    still_passing: int = 0
    """Checks that pass, as they did before the work."""
    masked: int = 0
    """So many of its checks hide their exit codes and decide nothing."""
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
    """Of what goes on: nano-USD by stretches of time, up to this one (`harness.projections.state.spend_rate`)."""
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
    parked: int = 0
    """Stand still among those that run, and wait for nobody: paused, most of them."""
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
    sandbox: str = ""
    warnings: list[str] = []
    troubles: tuple[TroubleView, ...] = ()
    """What is wrong with the fleet itself, the worst first; an endpoint that does not answer is among `endpoints`."""
    endpoints: tuple[EndpointView, ...] = ()


def troubled(made: SessionRow, found: problems.Trouble, *, held: bool) -> SessionRow:
    """The row of a session that something holds up.

    What ends by itself is no failure, and never hides what a person is asked.
    """
    words = problems.held(found) if held else found.words
    if not (words.person or words.mend) and made.state == State.WAITING:
        return made
    state = State.LIMITED
    group = RUNNING
    if words.person or words.mend:
        state = State.FAILED if words.person else State.PARKED
        group = ERRORS
    evidence = found.cause or made.evidence
    return say(
        msgspec.structs.replace(
            made, state=state, group=group, detail=words.headline, source="supervisor", evidence=evidence
        ),
        words,
    )


def changed(made: SessionRow, files: int, added: int, removed: int, *, counted: bool) -> SessionRow:
    """The row with how much its session changed against its base; there is nothing to review where that is nothing and
    it was ``counted`` after the last call.
    """
    group = DONE if made.group == REVIEW and counted and not files else made.group
    return msgspec.structs.replace(made, files=files, lines_added=added, lines_removed=removed, group=group)


def taken_back(made: SessionRow) -> SessionRow:
    """The row of work that the branch it was merged into has no more."""
    said = made.detail.replace(f"merged into {made.merged}", f"taken back from {made.merged}", 1)
    return msgspec.structs.replace(made, group=REVIEW, detail=said, merged="", merged_commit="")


def reminded(made: SessionRow, now: float) -> SessionRow:
    """The row without a putting off that is over by ``now`` (seconds since the epoch), or that nothing needs."""
    if not made.put_off:
        return made
    holds = made.group == ERRORS and not made.alarms and (parse_ts(made.put_off) or 0.0) > now
    return made if holds else msgspec.structs.replace(made, put_off="")


def say(made: SessionRow, words: problems.Words) -> SessionRow:
    """The row with what happens next, and what a person can do."""
    fill = {name: getattr(words, name).replace("{sid}", made.sid) for name in ("next", "do", "command")}
    return msgspec.structs.replace(made, action=words.action, **fill)


class Standing(NamedTuple):
    """What of a row the totals count. ``rings``: it runs, though it stands among the errors; ``put_off``: the person
    wants nothing of it for now; ``parked``: it stands still, though it may stand among those that run.
    """

    group: str
    rings: bool
    put_off: bool
    parked: bool


def standing(made: SessionRow) -> Standing:
    """What of a row the totals count."""
    return Standing(made.group, bool(made.alarms), bool(made.put_off), made.state == State.PARKED)


def counted(base: FleetView, rows: Iterable[Standing]) -> FleetView:
    """``base`` with how many sessions there are in each group, how many run, those that ring included, how many are
    parked among them, and how many the queue has something of: requests, and what failed or rings and was not put off.
    """
    known = list(rows)
    groups = Counter(one.group for one in known)
    waiting = sum(one.group == ERRORS and not one.put_off for one in known)
    parked = sum(one.group == RUNNING and one.parked for one in known)
    return msgspec.structs.replace(
        base,
        sessions=groups.total(),
        needs_you=groups[NEEDS_YOU] + waiting,
        errors=groups[ERRORS],
        running=groups[RUNNING] - parked + sum(one.rings for one in known),
        parked=parked,
        review=groups[REVIEW],
        done=groups[DONE],
    )
