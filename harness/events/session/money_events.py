"""Events of caps, and of a session that goes on without getting anywhere."""

from __future__ import annotations

from harness.events.body import Body, By, Caps, Usage


class BudgetReached(Body, frozen=True, kw_only=True):
    """The next request or call would pass a cap. ``cap``: session.usd, session.tokens, session.wall, session.calls,
    day.usd, fleet.usd …

    ``day`` is the window of a cap of the day.
    """

    TYPE = "budget.reached"
    cap: str
    used: int
    limit: int
    need: int = 0
    day: str = ""


class CapsRaised(Body, frozen=True, kw_only=True):
    """The session's caps from now on; with ``cap``, a cap above it is raised to ``limit`` (over the configured
    ``base``, for ``day``), too.

    ``decision_id`` names the decision behind such a raise. The ledger follows this record, so a raise is decided before
    it holds.
    """

    TYPE = "caps.raised"
    caps: Caps
    by: By = By()
    cap: str = ""
    limit: int = 0
    base: int = 0
    day: str = ""
    decision_id: str = ""


class FinishUp(Body, frozen=True, kw_only=True):
    """A person lets the session end with one last reply, up to an allowance."""

    TYPE = "budget.finish_up"
    allowance_nano: int


class ModelSettled(Body, frozen=True, kw_only=True):
    """The cost of a reply that could not be settled when it came; its own record has the worst case,
    ``recorded_nano``.
    """

    TYPE = "model.settled"
    request_id: str
    reservation: str
    usage: Usage
    cost_nano: int
    recorded_nano: int
    price_source: str = ""
    purpose: str = ""

    @property
    def more_nano(self) -> int:
        """What it adds to a sum of what replies cost by their own records: usually less than nothing."""
        return self.cost_nano - self.recorded_nano


class BillsBelieved(Body, frozen=True, kw_only=True):
    """A person lets the session go on with an endpoint that reports impossible usage: such a reply counts as what was
    reserved for it.
    """

    TYPE = "bills.believed"
    by: By = By()


class BreakerOpened(Body, frozen=True, kw_only=True):
    """The agent goes in circles: the same kind of thing happened ``count`` times."""

    TYPE = "breaker.opened"
    kind: str
    count: int
    detail: str = ""
