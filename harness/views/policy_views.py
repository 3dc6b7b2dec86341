"""What is told about a policy, as clients see it. Names and commands are untrusted: whoever shows them passes the
display function.
"""

from __future__ import annotations

import msgspec


class PolicyCheck(msgspec.Struct, frozen=True, kw_only=True):
    """Whether a text is a policy: the number of rules, or the problem and its line; for a repository's own also what
    would be ignored.
    """

    rules: int
    problem: str
    ignored: list[str]


class Explanation(msgspec.Struct, frozen=True, kw_only=True):
    """How the policy in force decides an action, and why; ``grants`` are rules of the person that would cover it."""

    title: str
    verdict: str
    rule: str
    reason: str
    risk: str
    why: list[str]
    grants: list[str]


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded call that another policy would decide differently: the verdict ``then``, ``now`` by the policy in
    force, and by the ``tried`` one (its ``rule``).
    """

    sid: str
    session: str
    call_id: str
    title: str
    ts: str
    then: str
    now: str
    tried: str
    rule: str


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """How another policy would have decided recorded calls. ``counts`` are the changes by ``now → tried``;
    ``changed`` the newest of them; ``unread`` names sessions whose log could not be read.
    """

    looked_at: int
    counts: dict[str, int]
    changed: list[Changed]
    unread: list[str]


class PolicyChecked(msgspec.Struct, frozen=True, kw_only=True):
    """The reply of ``policy_check``."""

    check: PolicyCheck


class PolicyExplained(msgspec.Struct, frozen=True, kw_only=True):
    """The reply of ``policy_explain``."""

    explanation: Explanation


class PolicyTried(msgspec.Struct, frozen=True, kw_only=True):
    """The reply of ``policy_try``."""

    trial: Trial
