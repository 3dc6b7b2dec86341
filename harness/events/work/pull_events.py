"""Events of a person's sending a session's work to a remote, for others to look at."""

from __future__ import annotations

from harness.events.body import Body, By

RAN_FOR = "pull "
"""What `ToolProposed.ref` of a push begins with that a person ordered: no model can call itself so, for the blank."""
PUSHED = "pushed"
FAILED = "failed"
BROKEN_OFF = "broken off"


class PullStarted(Body, frozen=True, kw_only=True):
    """``head`` of an ended session is pushed to ``branch`` at ``remote`` (its name; ``url`` without a credential)."""

    TYPE = "pull.started"
    pull_id: str
    remote: str
    url: str
    branch: str
    head: str
    by: By = By()


class PullEnded(Body, frozen=True, kw_only=True):
    """``outcome``: pushed, failed, broken off (nobody saw its end)."""

    TYPE = "pull.ended"
    pull_id: str
    outcome: str
    remote: str
    branch: str
    head: str
    why: str = ""
    by: By = By()


class PullOpened(Body, frozen=True, kw_only=True):
    """A program of the person opened a request for review of ``branch``; ``address`` is what it printed."""

    TYPE = "pull.opened"
    branch: str
    address: str
    program: str
    by: By = By()
