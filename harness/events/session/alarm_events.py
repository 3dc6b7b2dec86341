"""Events of alarms: something about a session that runs wants a look, and when that is over."""

from __future__ import annotations

from harness.events.body import Body, By


class AlarmRaised(Body, frozen=True, kw_only=True):
    """``alarm`` is one of `harness.views.alarms.KINDS`; ``value`` passed ``limit`` (seconds, nano-USD or times).

    ``evidence``: numbers of the records that it rests on.
    """

    TYPE = "alarm.raised"
    alarm: str
    words: str
    value: int
    limit: int
    evidence: list[int] = []


class AlarmCleared(Body, frozen=True, kw_only=True):
    """An alarm is over; ``why`` in words."""

    TYPE = "alarm.cleared"
    alarm: str
    why: str = ""


class AlarmSnoozed(Body, frozen=True, kw_only=True):
    """A person put the present alarms off until ``until``; an alarm of another kind still rings.

    `harness.domain.problems.HELD` among ``alarms``: what has failed or stands still waits at the end of the queue.
    """

    TYPE = "alarm.snoozed"
    alarms: list[str]
    until: str
    by: By = By()
