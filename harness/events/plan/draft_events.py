"""Events about a plan that a session drafts from its goal, before work begins."""

from __future__ import annotations

from harness.events.body import Body


class PlanTried(Body, frozen=True, kw_only=True):
    """The drafted plan at ``path`` was parsed; its ``commands`` now run once, before the person is asked about it."""

    TYPE = "plan.tried"
    path: str
    commands: list[str]


class PlanDrafted(Body, frozen=True, kw_only=True):
    """The agent says that the plan at ``path`` is written. ``count`` is the number of entries found (0: not a plan),
    ``problems`` what is wrong. ``sent_back``: the agent was told to fix it; otherwise a person is asked, or the plan is
    accepted.
    """

    TYPE = "plan.drafted"
    path: str
    count: int = 0
    problems: list[str] = []
    sent_back: bool = False
