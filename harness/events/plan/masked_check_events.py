"""The event of checks whose exit code does not tell that what they run failed."""

from __future__ import annotations

import msgspec

from harness.events.body import Body


class MaskedCheck(msgspec.Struct, frozen=True, omit_defaults=True):
    """A check, why its exit code says little, and what to write instead. ``hides``: it decides nothing then; False for
    one that runs a program of the agent's, which is only said.
    """

    command: str
    why: str
    instead: str = ""
    hides: bool = True

    @property
    def told(self) -> str:
        """One sentence for whoever gave it."""
        decides = "; it decides nothing" if self.hides else ""
        better = f"; better: {self.instead}" if self.instead else ""
        return f"the check `{self.command}`: {self.why}{decides}{better}"


class ChecksLooked(Body, frozen=True, kw_only=True):
    """The scripts of these checks were examined; ``masked`` are checks whose exit code says little."""

    TYPE = "checks.looked"
    commands: list[str]
    masked: list[MaskedCheck] = []
