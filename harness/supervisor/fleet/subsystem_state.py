"""What the rooms of the supervisor know of a session that is in no log: a record each, written by its room alone."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass, field

from harness.views.session_views import ApprovalView, SessionRow
from harness.workspace.tree.diff import Extent


@dataclass(slots=True)
class Restarts:
    """Times of recent failures of one part; more than ``limit`` within ``window`` seconds is too many."""

    limit: int = 3
    window: float = 60.0
    times: deque[float] = field(default_factory=deque)

    def add(self, now: float) -> bool:
        """Count one failure; True when the limit is reached."""
        while self.times and now - self.times[0] > self.window:
            self.times.popleft()
        self.times.append(now)
        return len(self.times) >= self.limit

    def backoff(self, longest: float = 60.0) -> float:
        """Seconds to wait after the newest failure: 0.2 s, quadrupling."""
        return min(longest, 0.2 * 4.0 ** max(0, len(self.times) - 1))

    def forgive(self) -> None:
        """What failed until now counts no more."""
        self.times.clear()


@dataclass(frozen=True, slots=True)
class Indexed:
    """The index's row of a session; not ``current`` when its log no longer ends where it did: then it counts only for
    what the log cannot say any more.
    """

    row: SessionRow
    current: bool


@dataclass(slots=True)
class Work:
    """The conductor's: the worker of a session, and the failures that it met, those of its keeper since the log said of
    anything that it is done (``done_seq``).
    """

    task: asyncio.Task[None] | None = None
    poke: asyncio.Event = field(default_factory=asyncio.Event)
    keeper_falls: Restarts = field(default_factory=Restarts)
    step_falls: Restarts = field(default_factory=Restarts)
    done_seq: int = -1

    def got(self, done_seq: int) -> None:
        """So far the log has come: who falls now and then and gets on in between is no one to give up."""
        if done_seq > self.done_seq:
            self.keeper_falls.forgive()
        self.done_seq = done_seq


@dataclass(slots=True)
class CallsNow:
    """The flow's of its calls: those that were told to run, and how often each of them met another world."""

    executing: set[str] = field(default_factory=set)
    stale: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class Shown:
    """The queue's: cards of open requests, and comparisons that were made before their card."""

    cards: dict[str, ApprovalView] = field(default_factory=dict)
    diffs: dict[str, str] = field(default_factory=dict)

    def compared(self, approval_id: str, diff: str) -> None:
        """What the card of this request will show is known already."""
        self.diffs[approval_id] = diff

    def only(self, still_open: Collection[str]) -> None:
        """Forget the cards of all other requests."""
        self.cards = {approval_id: card for approval_id, card in self.cards.items() if approval_id in still_open}


@dataclass(slots=True)
class Published:
    """The publishing's: the last failure that is on record, so that it is said once; until when (seconds of the
    monotonic clock) an end waits for what ends by itself, once it does.
    """

    told: str = ""
    until: float | None = None


@dataclass(slots=True)
class Counted:
    """The counting's: how much it had changed when its work stood at ``found_of``; a count of its work at ``of`` was
    begun at a time ``at`` (monotonic).
    """

    of: tuple[int, str, bool] = (-1, "", False)
    at: float = -math.inf
    found: Extent | None = None
    found_of: tuple[int, str, bool] = (-1, "", False)

    def take(self, found: Extent, of: tuple[int, str, bool]) -> None:
        """It was looked at by somebody else, when its work stood at ``of``."""
        self.of = of
        self.found = found
        self.found_of = of


@dataclass(frozen=True, slots=True)
class MergedInto:
    """The branch ``into`` of a repository stood on ``commit`` when a session's work was merged into it."""

    repo: str
    into: str
    commit: str


@dataclass(slots=True)
class Printed:
    """The job lines': the newest line that a job of it printed, as it was last looked up."""

    line: str = ""


@dataclass(slots=True)
class KeptStates:
    """The checkpoints': one is made at a time; one that could not be made is tried again at ``not_before`` (monotonic),
    and its failure is said once.
    """

    making: asyncio.Lock = field(default_factory=asyncio.Lock)
    not_before: float = 0.0
    told: str = ""
