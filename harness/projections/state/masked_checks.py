"""What a log says of checks whose exit code does not tell that what they run failed: each is looked at once, before it
decides anything. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.events.plan.masked_check_events import ChecksLooked, MaskedCheck


@dataclass(slots=True)
class Masking:
    """By command, what is wrong with each check that was looked at; None where nothing is."""

    looked: dict[str, MaskedCheck | None] = field(default_factory=dict)

    def take(self, b: ChecksLooked) -> None:
        self.looked |= dict.fromkeys(b.commands)
        self.looked |= {one.command: one for one in b.masked}

    def lacking(self, commands: Iterable[str]) -> list[str]:
        """Those of these commands that nobody looked at."""
        return [command for command in dict.fromkeys(commands) if command not in self.looked]

    def hides(self, command: str) -> str:
        """Why this check decides nothing; empty when it may."""
        found = self.looked.get(command)
        return found.why if found is not None and found.hides else ""

    def only(self, commands: Iterable[str]) -> bool:
        """Whether there are checks and each of them hides its exit code."""
        found = [bool(self.hides(command)) for command in commands]
        return bool(found) and all(found)
