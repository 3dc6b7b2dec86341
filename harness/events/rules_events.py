"""Events of a project's own words to agents (``AGENTS.md``, ``CLAUDE.md``): what of them a session was shown."""

from __future__ import annotations

from harness.events.body import Body


class RulesKnown(Body, frozen=True, kw_only=True):
    """Where the commit that the session began from has files of rules."""

    TYPE = "rules.known"
    paths: list[str]


class RulesRead(Body, frozen=True, kw_only=True):
    """A file of rules as it is in the context from now on: SHA-256 and size of the whole, the beginning of its text.

    ``sha`` is empty when there is no such regular file any more.
    """

    TYPE = "rules.read"
    path: str
    sha: str = ""
    bytes: int = 0
    text: str = ""
