"""Events of a plan that the session itself writes from its goal, before anybody works on it."""

from __future__ import annotations

from harness.events.body import Body


class PlanTried(Body, frozen=True, kw_only=True):
    """The plan at ``path`` can be read, and its commands are run before anybody is asked about it."""

    TYPE = "plan.tried"
    path: str
    commands: list[str]


class PlanDrafted(Body, frozen=True, kw_only=True):
    """The agent says that the plan at ``path`` is written; ``count`` entries were found (0: it is no plan), and these
    problems. ``sent_back``: the agent was told; otherwise a person is asked, or it counts.
    """

    TYPE = "plan.drafted"
    path: str
    count: int = 0
    problems: list[str] = []
    sent_back: bool = False
