"""Events that only tell: time that nobody worked in, and notes of the harness."""

from __future__ import annotations

from harness.events.body import Body


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
