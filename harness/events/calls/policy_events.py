"""Events of a repository's own policy, which can only tighten."""

from __future__ import annotations

from harness.events.body import Body


class PolicyRead(Body, frozen=True, kw_only=True):
    """The policy of the commit that a session began from, whole: SHA-256 of the file, its text, and what of it does
    not count because it would loosen or cannot be read, a sentence each.
    """

    TYPE = "policy.read"
    path: str
    sha: str
    text: str
    ignored: list[str] = []
