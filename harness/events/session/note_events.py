"""Events that only tell: time that nobody worked in, and notes of the harness."""

from __future__ import annotations

from harness.events.body import Body


class TimePassed(Body, frozen=True, kw_only=True):
    """Seconds in which nobody could work although the clock moved: the machine slept, or its clock was set (negative:
    back).
    """

    TYPE = "time.passed"
    seconds: float
    why: str = ""


class HarnessNote(Body, frozen=True, kw_only=True):
    """A note of the harness; ``level`` is info, warning or error."""

    TYPE = "harness.note"
    level: str
    text: str
    component: str = ""
