"""The row of a session, from its fold and the supervisor's knowledge of who is alive. Pure."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import msgspec

from harness.domain import problems
from harness.domain.outcomes import NOW_PASSES, STILL_PASSES
from harness.domain.states import State
from harness.domain.text.formatting import counted
from harness.events import types as t
from harness.events.session.alarm_events import AlarmRaised
from harness.events.work.commit_events import HELD_BACK
from harness.projections.state.row_state import Liveness, first_request, state_of, without_criterion, words_of
from harness.projections.state.session_state import Context, SessionState
from harness.views.alarms import SILENT
from harness.views.session_views import DONE, ERRORS, NEEDS_YOU, REVIEW, RUNNING, SessionRow, say

_JOB = 160
_GROUP_OF = {"waiting": NEEDS_YOU, "failed": ERRORS, "unknown": ERRORS, "done": REVIEW, "stopped": DONE}


def context_of(c: Context) -> str:
    """The size of a session's context, and what was done to keep it small."""
    if not c.tokens:
        return ""
    of = f" of {c.working:,} to work in" if c.working else ""
    times = [
        f" · {words} {counted(count, 'time')}"
        for words, count in (("cleared", c.clearings), ("begun anew", c.resets), ("compacted", c.compactions))
        if count
    ]
    return f"{c.tokens:,} tokens{of}" + "".join(times)


class Money(NamedTuple):
    """What the ledger says of one session, in nano-USD and tokens; ``spent`` None: nobody knows. ``unknown`` of what is
    spent is the worst case of requests of unknown outcome.
    """

    spent: int | None = None
    reserved: int = 0
    price: str = ""
    tokens: int = 0
    requests: int = 0
    usage: t.Usage = t.Usage()
    unknown: int = 0
    unknown_tokens: int = 0

    def with_another(self, other: Money) -> Money:
        """Both sessions together; their prices may differ, so none is named."""
        return Money(
            spent=(self.spent or 0) + (other.spent or 0),
            reserved=self.reserved + other.reserved,
            tokens=self.tokens + other.tokens,
            requests=self.requests + other.requests,
            usage=self.usage + other.usage,
            unknown=self.unknown + other.unknown,
            unknown_tokens=self.unknown_tokens + other.unknown_tokens,
        )


_UNKNOWN = Money()


def row(sid: str, s: SessionState, live: Liveness, *, money: Money = _UNKNOWN, now: float = 0.0) -> SessionRow:
    """The row of one session; money from the ledger where it knows, else from the log. ``now`` (seconds since the
    epoch) decides which alarms ring that were put off.
    """
    made = _plain(sid, s, live, money)
    words = words_of(s, made.state)
    if words is not None:
        return say(made, words)
    ringing = s.alarms.ringing(now) if made.state in (State.RUNNING, State.STARTING) else []
    return _alarmed(made, ringing) if ringing else made


def _since(s: SessionState, live: Liveness, state: str) -> str:
    """When what the row says began."""
    if s.approvals:
        return min(a.ts for a in s.approvals.values())
    if s.doing:
        return max(d.ts for d in s.doing.values())
    if s.jobs.running and state == State.RUNNING and not live.brain:
        return min(job.ts for job in s.jobs.running.values())
    return s.ended_ts or s.last_ts


def _plain(sid: str, s: SessionState, live: Liveness, money: Money) -> SessionRow:
    state, detail, evidence = state_of(s, live)
    if s.terminal and s.held_back:
        detail = f"{HELD_BACK}; {detail}"
    i = s.intent
    stand = Counter(s.outcomes.values())
    asked = first_request(s) if state == State.WAITING else None
    return SessionRow(
        sid=sid,
        name=s.name or sid,
        state=state,
        group=DONE if s.ended is not None and s.merging.merged else _GROUP_OF.get(state, RUNNING),
        detail=detail,
        since=_since(s, live, state),
        repo=i.repo if i else "",
        branch=i.branch if i else "",
        worktree=i.worktree if i else "",
        folder=s.created.folder if s.created is not None else "",
        model=i.model if i else "",
        goal=i.goal if i else "",
        created=s.first_ts,
        last_ts=s.last_ts,
        last_event=s.last_event,
        seq=s.seq,
        spent_nano=s.spent_nano if money.spent is None else money.spent,
        reserved_nano=money.reserved,
        unknown_nano=money.unknown,
        cap_nano=s.caps.usd_nano,
        tokens=s.usage.total if money.spent is None else money.tokens,
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
        merged_commit=s.merging.ended.commit if s.merging.ended is not None and s.merging.merged else "",
        no_criterion=without_criterion(s),
        approvals=list(s.approvals),
        jobs={name: job.what[:_JOB] for name, job in s.jobs.running.items()},
        evidence=evidence,
        proof=s.ended.proof if s.ended else "",
        verified=s.ended.verified if s.ended else False,
        now_passing=stand[NOW_PASSES],
        still_passing=stand[STILL_PASSES],
        masked=sum(bool(s.masking.hides(command)) for command in s.checks),
        price=money.price,
        desired=s.desired,
        ended=s.terminal,
        asks=asked.kind if asked is not None else "",
        burned=[] if s.terminal else list(s.burned.nano),
        burned_step=s.burned.step,
        put_off=s.alarms.put_off,
    )


def _alarmed(made: SessionRow, ringing: list[AlarmRaised]) -> SessionRow:
    """It runs, and wants a look."""
    first = ringing[0]
    records = "record" if len(first.evidence) == 1 else "records"
    rests_on = ", ".join(map(str, first.evidence))
    told = msgspec.structs.replace(
        made,
        group=ERRORS,
        detail=first.words if first.alarm == SILENT else f"{first.words} · now {made.detail}",
        evidence=f"{records} {rests_on} of its log" if rests_on else made.evidence,
        alarms=[one.words for one in ringing],
    )
    return say(told, problems.ALARM)
