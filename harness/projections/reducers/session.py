"""What these records change in the state: a session, its brain and its keeper, from launch to end."""

from __future__ import annotations

from datetime import datetime

from harness.domain.states import Desired, ParkedFor
from harness.events import types as t
from harness.projections.reducers.handlers import Handlers
from harness.projections.state.session_state import SessionState

HANDLERS = Handlers()
_on = HANDLERS.on


@_on(t.SessionIntent)
def _intent(s: SessionState, r: t.Record, b: t.SessionIntent) -> None:
    s.intent = b
    s.name = b.name
    s.caps = b.caps
    s.checks = dict.fromkeys(b.checks)
    s.max_rounds = b.max_rounds
    s.judging.wanted = b.judge
    if b.forked is not None:
        s.iterations = s.iterations.handed(b.forked)
        s.before.handed(b.forked.before)


@_on(t.SessionCreated)
def _created(s: SessionState, r: t.Record, b: t.SessionCreated) -> None:
    s.created = b
    s.head = b.base


@_on(t.WorkCommitted)
def _committed(s: SessionState, r: t.Record, b: t.WorkCommitted) -> None:
    s.head = b.head
    s.held_back = ""


@_on(t.WorkHeldBack)
def _held_back(s: SessionState, r: t.Record, b: t.WorkHeldBack) -> None:
    s.held_back = b.why


@_on(t.MergeStarted)
def _merged(s: SessionState, r: t.Record, b: t.MergeStarted) -> None:
    s.held_back = ""  # it does not begin before its branch has them


@_on(t.PullStarted)
def _pulled(s: SessionState, r: t.Record, b: t.PullStarted) -> None:
    s.held_back = ""  # nor does this


@_on(t.SessionDesired)
def _desired(s: SessionState, r: t.Record, b: t.SessionDesired) -> None:
    if s.desired == Desired.STOPPED and b.state != Desired.STOPPED:
        return  # a stop is final, whoever writes what after it
    s.desired = b.state
    s.desired_reason = b.reason
    if b.state == Desired.RUNNING:
        s.quarantined = None
        s.failures_in_row = 0


@_on(t.SessionParked)
def _parked(s: SessionState, r: t.Record, b: t.SessionParked) -> None:
    s.parked = b
    s.parked_ts = r.ts
    s.jobs.heard = False
    s.doing.pop("model", None)


@_on(t.SessionEnded)
def _ended(s: SessionState, r: t.Record, b: t.SessionEnded) -> None:
    _waited(s, r.ts)
    s.ended = b
    proved = b.verified or b.still or b.judged
    if proved and s.judging.wanted is not None and not s.judging.satisfied:
        s.ended = b.unproved(f"{b.reason}; its judge never was satisfied")
    elif proved and s.contract.due:
        s.ended = b.unproved(f"{b.reason}; its contract was never agreed")
    s.ended_ts = r.ts
    s.ended_seq = r.seq
    s.doing.clear()
    s.unjudged.clear()


@_on(t.SessionContinued)
def _continued(s: SessionState, r: t.Record, b: t.SessionContinued) -> None:
    s.away_s += _seconds(s.ended_ts, r.ts)
    s.ended = None
    s.ended_ts = ""
    s.undone_since = False
    s.desired = "running"
    s.desired_reason = ""
    s.parked = None
    s.quarantined = None
    s.last_failure = None
    s.budget = None
    s.finish_up = None
    s.failures_in_row = 0
    s.max_rounds = b.rounds or s.max_rounds
    s.iterations = s.iterations.continued()
    if s.plan is not None and s.iterations.n:
        s.plan.work.continued()
    s.caps = s.caps if b.caps is None else b.caps
    s.checks = dict.fromkeys(s.checks if b.checks is None else b.checks)
    s.judging.instructed()


@_on(t.Quarantined)
def _quarantined(s: SessionState, r: t.Record, b: t.Quarantined) -> None:
    s.quarantined = b


@_on(t.LeaseGranted)
def _lease(s: SessionState, r: t.Record, b: t.LeaseGranted) -> None:
    _waited(s, r.ts)
    s.lease = b
    s.lease_gen = b.gen
    s.parked = None


@_on(t.TimePassed)
def _time_passed(s: SessionState, r: t.Record, b: t.TimePassed) -> None:
    if not _standing_by(s):
        s.away_s += int(b.seconds)


@_on(t.LeaseEnded)
def _lease_ended(s: SessionState, r: t.Record, b: t.LeaseEnded) -> None:
    if s.lease is not None and s.lease.gen == b.gen:
        s.lease = None
    s.doing.pop("model", None)


@_on(t.KeeperStarted)
def _keeper(s: SessionState, r: t.Record, b: t.KeeperStarted) -> None:
    if s.keeper is not None and s.keeper.boot != b.boot and not _standing_by(s):
        s.away_s += _seconds(s.last_ts, r.ts)  # the machine was off since the record before
    s.keeper = b
    s.recovered += b.recovered


@_on(t.LogRecovered)
def _recovered(s: SessionState, r: t.Record, b: t.LogRecovered) -> None:
    s.recovered += 1


def _seconds(since: str, until: str) -> int:
    """Whole seconds between two times of the log, never negative; 0 when one of them is none."""
    try:
        return max(0, int((datetime.fromisoformat(until) - datetime.fromisoformat(since)).total_seconds()))
    except (ValueError, TypeError):
        return 0


def _standing_by(s: SessionState) -> bool:
    """It ended, or waits for its endpoint: the whole of that time is left out when it is over."""
    return s.ended is not None or (s.parked is not None and s.parked.why == ParkedFor.LIMITED)


def _waited(s: SessionState, ts: str) -> None:
    """Leave out the time that it stood by for its endpoint."""
    if s.ended is None and _standing_by(s):
        s.away_s += _seconds(s.parked_ts, ts)
