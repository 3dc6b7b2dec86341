"""When a session that runs wants a look: silence, money that buys nothing, money that runs, a check that fails in the
same way again and again. Decided from the fold and a clock that is passed in; each alarm is raised once and cleared
once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from harness.domain.states import Desired
from harness.domain.text.formatting import line, parse_ts, span, usd
from harness.events import types as t
from harness.projections.state import spend_rate
from harness.projections.state.session_state import SessionState

SILENT = "silent"
NO_PROGRESS = "no progress"
COST = "cost"
STUCK = "stuck check"
KINDS = (SILENT, NO_PROGRESS, COST, STUCK)
_HOUR_S = 3600.0
_WINDOW = 1
"""Stretches of `burned.STEP_S` before the running one that the cost of a minute is taken over."""
_CALM = 0.8
"""An alarm of money is over below this part of its limit, so that a rate near it does not ring again and again."""


@dataclass(frozen=True, slots=True)
class AlarmLimits:
    """What is too much; None = never. Seconds without a sign of work, nano-USD within an hour without progress,
    nano-USD a minute, failures of one check in a row in the same way.
    """

    silent_s: int | None = 1800
    no_progress_nano: int | None = 5_000_000_000
    minute_nano: int | None = 1_000_000_000
    same_failure: int | None = 5


def running(s: SessionState) -> bool:
    """It is to work and nothing holds it up: whatever waits, waits for a reason that is told elsewhere."""
    told = s.ended is not None or s.desired != Desired.RUNNING or s.quarantined is not None or s.parked is not None
    return s.created is not None and not told and not s.approvals


def found(
    s: SessionState, now: float, limits: AlarmLimits, held: Iterable[str] = (), at_work: str = ""
) -> dict[str, t.AlarmRaised]:
    """What is wrong at this time (seconds since the epoch), by kind; one that is ``held`` already stays until it is
    clearly over. ``at_work`` is the call that runs, in words.
    """
    if not running(s):
        return {}
    calm = {kind: _CALM if kind in held else 1.0 for kind in KINDS}
    made = (
        _silent(s, now, limits.silent_s, at_work),
        _no_progress(s, now, limits.no_progress_nano, calm[NO_PROGRESS]),
        _cost(s, now, limits.minute_nano, calm[COST]),
        _stuck(s, limits.same_failure),
    )
    return {one.alarm: one for one in made if one is not None}


def changes(s: SessionState, now: float, limits: AlarmLimits, at_work: str = "") -> list[t.Body]:
    """The records that are owed: what is wrong and not raised yet, and what was raised and is over."""
    here = found(s, now, limits, s.alarms.raised, at_work)
    fresh: list[t.Body] = [one for kind, one in here.items() if kind not in s.alarms.raised]
    why = "it is over" if running(s) else "it does not run"
    return fresh + [t.AlarmCleared(alarm=kind, why=why) for kind in s.alarms.raised if kind not in here]


def _silent(s: SessionState, now: float, limit: int | None, at_work: str) -> t.AlarmRaised | None:
    since = parse_ts(s.pace.heard_ts)
    quiet = int(now - since) if since is not None else 0
    if not limit or quiet < limit:
        return None
    known = max(s.doing.values(), key=lambda one: one.ts).what if s.doing else "nothing that the log knows of"
    words = f"nothing came of it for {span(quiet)}; at: {line(at_work or known, 120)}"
    return t.AlarmRaised(alarm=SILENT, words=words, value=quiet, limit=limit, evidence=_known(s.pace.heard_seq))


def _no_progress(s: SessionState, now: float, limit: int | None, calm: float) -> t.AlarmRaised | None:
    since = parse_ts(s.pace.progress_ts)
    if not limit or since is None:
        return None
    spent = s.spent_nano - s.pace.progress_nano
    if now - since > _HOUR_S:
        spent = min(spent, sum(spend_rate.lately(s.burned.step, s.burned.nano, now)))
    if spent < limit * calm:
        return None
    words = f"{usd(spent)} within an hour, and no step closer to its goal for {span(now - since)}"
    return t.AlarmRaised(
        alarm=NO_PROGRESS, words=words, value=spent, limit=limit, evidence=_known(s.pace.progress_seq, s.seq)
    )


def _cost(s: SessionState, now: float, limit: int | None, calm: float) -> t.AlarmRaised | None:
    recent = spend_rate.lately(s.burned.step, s.burned.nano, now)[-1 - _WINDOW :]
    seconds = _WINDOW * spend_rate.STEP_S + now % spend_rate.STEP_S
    a_minute = int(sum(recent) * 60 / seconds)
    if not limit or a_minute < limit * calm:
        return None
    words = f"{usd(a_minute)} a minute over the last {span(seconds)}"
    return t.AlarmRaised(alarm=COST, words=words, value=a_minute, limit=limit, evidence=_known(s.seq))


def _stuck(s: SessionState, limit: int | None) -> t.AlarmRaised | None:
    if not limit or not s.pace.failing:
        return None
    command, worst = max(s.pace.failing.items(), key=lambda item: item[1].times)
    if worst.times < limit:
        return None
    words = f"a check failed {worst.times} times in a row in the same way: {line(command, 120)}"
    return t.AlarmRaised(alarm=STUCK, words=words, value=worst.times, limit=limit, evidence=list(worst.seqs))


def _known(*seqs: int) -> list[int]:
    return [seq for seq in seqs if seq >= 0]
