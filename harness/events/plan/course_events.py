"""Events of the course of the work on a plan: what was begun or is blocked, steps, and why they changed."""

from __future__ import annotations

from harness.events.body import Body

TOOL_FAILURE = "tool_failure"
OVERSIZE_OUTPUT = "oversize_output"
CORRECTION = "correction"
ASSUMPTION = "assumption"
"""Why the steps of a phase have to be thought over; the harness sees all but a wrong assumption by itself."""


class PlanUpdated(Body, frozen=True, kw_only=True):
    """The agent changed its course. With ``trigger`` (one of those above) this is a replan, for ``reason``; ``about``
    is the record that the harness saw it in, ``call_id`` the agent's call that asked for it.

    ``steps`` are those of the current phase from now on (None = as before). ``entry`` has the ``state`` in_progress or
    blocked from now on, or only a ``note``.
    """

    TYPE = "plan.updated"
    trigger: str = ""
    reason: str = ""
    about: int = -1
    call_id: str = ""
    steps: list[str] | None = None
    entry: str = ""
    state: str = ""
    note: str = ""
