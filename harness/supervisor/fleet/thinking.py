"""What thinks for a session: its living brain, those not yet taken away, and what their ends hold up."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from harness.linux.proc import Identity, Look
from harness.supervisor.fleet.next_step import Falls
from harness.supervisor.fleet.subsystem_state import Restarts
from harness.supervisor.processes.process import Watch


@dataclass(slots=True)
class Brain:
    """One living brain incarnation. ``secret`` is empty for one taken over from an earlier supervisor."""

    gen: int
    who: Identity
    secret: str
    leased: asyncio.Event = field(default_factory=asyncio.Event)
    gone: asyncio.Event = field(default_factory=asyncio.Event)
    watch: Watch | None = None
    exit_code: int | None = None
    stopped_s: float = 0.0
    """For so long it was found stopped at every look."""
    seen: Look | None = None
    awaited_s: float = 0.0
    """How it was at the last look, and for how long it has been so while a reply was awaited."""
    why: str = ""
    """Why we ended it; empty when we did not."""
    doing: tuple[str, str, str] = ("", "", "")
    """What it is at and the evidence, in its own words, and the request that this was said of."""


@dataclass(slots=True)
class Thinking:
    """The brains' of a session: the living one, those whose ends are not on record yet, and how often they fell."""

    brain: Brain | None = None
    buried: list[Brain] = field(default_factory=list)
    falls: Falls = field(default_factory=Falls)
    fenced: Restarts = field(default_factory=lambda: Restarts(limit=10))
    not_before: float = 0.0
    """On the monotonic clock; no brain is started earlier."""

    def forgive(self) -> None:
        """A person wants it looked at again: what fell until now counts no more."""
        self.fenced.forgive()
        self.calm()

    def calm(self) -> None:
        """What fell counts no more, and the next brain may come at once."""
        self.falls = Falls()
        self.not_before = 0.0
