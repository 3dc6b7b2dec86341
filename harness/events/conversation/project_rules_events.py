"""Events of a project's own words to agents (``AGENTS.md``, ``CLAUDE.md``): what of them a session was shown."""

from __future__ import annotations

import msgspec

from harness.events.body import Body


class RulesKnown(Body, frozen=True, kw_only=True):
    """Where the commit that the session began from has rules files (``AGENTS.md`` and the like)."""

    TYPE = "rules.known"
    paths: list[str]


class RulesPart(msgspec.Struct, frozen=True):
    """A file that a file of rules brings in, named by the file ``by``: SHA-256 and size of the whole, the beginning of
    its text.
    """

    path: str
    sha: str
    bytes: int
    text: str
    by: str


class RulesRead(Body, frozen=True, kw_only=True):
    """A rules file as the context shows it from now on: SHA-256 and size of the whole, and the beginning of its text.

    ``sha`` is empty when there is no such file any more, or it is left out. ``real`` is where it lies when ``path`` is
    a link; ``left_out`` are names with the reason, this file's own among them.
    """

    TYPE = "rules.read"
    path: str
    real: str = ""
    sha: str = ""
    bytes: int = 0
    text: str = ""
    parts: list[RulesPart] = []
    left_out: list[str] = []

    @property
    def files(self) -> tuple[str, ...]:
        """Every file that its words come from."""
        return (self.path, *([self.real] if self.real else ()), *(part.path for part in self.parts))
