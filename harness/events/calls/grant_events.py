"""Events of rules that a person made of requests, in the log of the session that they concern."""

from __future__ import annotations

from harness.events.body import Body, By

_DECIDER = "grant "


def rule_name(grant: str) -> str:
    """How a verdict, or a decision, names the rule of a person that it comes from."""
    return _DECIDER + grant


def grant_of(rule: str) -> str:
    """The rule's id in such a name; empty when it is none."""
    return rule.removeprefix(_DECIDER) if rule.startswith(_DECIDER) else ""


class GrantMade(Body, frozen=True, kw_only=True):
    """A person made a rule of a request of this session. ``words`` say what must be so, ``scope`` is session,
    repository or fleet.
    """

    TYPE = "grant.made"
    grant: str
    approval_id: str
    scope: str
    words: list[str]
    count: int
    expires: str
    typed: bool = False
    by: By = By()


class GrantUsed(Body, frozen=True, kw_only=True):
    """A rule let this action of a call run, as its ``use``-th of ``count`` calls; durable in the log of rules before
    this is written.
    """

    TYPE = "grant.used"
    grant: str
    call_id: str
    action_hash: str
    use: int
    count: int
