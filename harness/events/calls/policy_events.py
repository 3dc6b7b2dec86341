"""Events of a repository's own policy, which can only tighten."""

from __future__ import annotations

from harness.events.body import Body


class PolicyRead(Body, frozen=True, kw_only=True):
    """The repository's policy in the commit that the session began from: its SHA-256, its text, and what of it is
    ignored because it would loosen or cannot be read.
    """

    TYPE = "policy.read"
    path: str
    sha: str
    text: str
    ignored: list[str] = []
