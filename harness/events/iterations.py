"""Where a session stands in its plan: the task at hand, attempts, what was tried, and the harness's own chores. Pure.

The fold holds an `Iterations`; what is due by it says `harness.plan.iterations`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from harness.events import tools
from harness.events.call_events import ToolEnded, ToolProposed
from harness.events.iteration_events import ApproachFailed, IterationEnded, IterationStarted

SETUP = "setup"
_OUTPUT = 3000
"""Characters kept of a chore's output, its end."""
_WORDS = 6
_APPROACHES = 5
_ENTRIES = 5000
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Told:
    """Words, and the record they come from."""

    seq: int
    text: str
    why: str = ""


@dataclass(frozen=True, slots=True)
class Chore:
    """A command that the harness runs on its own account; ``status`` is empty while it runs."""

    kind: str
    command: str
    status: str = ""
    exit_code: int | None = None
    output: str = ""

    @property
    def good(self) -> bool:
        return self.status == "ok" and not self.exit_code

    @property
    def how(self) -> str:
        return self.status if self.exit_code is None else f"exit {self.exit_code}"


@dataclass(frozen=True, slots=True)
class Iterations:
    """``entry`` is the task at hand, empty between two of them."""

    n: int = 0
    entry: str = ""
    started_seq: int = -1
    attempts: dict[str, int] = field(default_factory=dict)
    """How often each entry was begun since the session began, or goes on."""
    outcomes: dict[str, str] = field(default_factory=dict)
    approaches: dict[str, tuple[Told, ...]] = field(default_factory=dict)
    words: tuple[Told, ...] = ()
    """What a person said after the goal, the newest last."""
    checked: dict[str, int] = field(default_factory=dict)
    """By check, the record of its newest verdict."""
    regressed: bool = False
    """What passed was asked to be checked again since the newest task ended."""
    setup: Chore | None = None
    setup_for: int = -1
    """The iteration before which it ran."""
    running: dict[str, Chore] = field(default_factory=dict)
    """Chores by call."""

    def started(self, seq: int, b: IterationStarted) -> Iterations:
        attempts = self.attempts | {b.entry: self.attempts.get(b.entry, 0) + 1}
        return replace(self, n=b.n, entry=b.entry, started_seq=seq, attempts=attempts, regressed=False)

    def ended(self, b: IterationEnded) -> Iterations:
        return replace(self, entry="", outcomes=self.outcomes | {b.entry: b.outcome}, regressed=False)

    def failed(self, seq: int, b: ApproachFailed) -> Iterations:
        told = (*self.approaches.get(b.entry, ()), Told(seq, b.what, b.why))[-_APPROACHES:]
        return replace(self, approaches=_newest(self.approaches, b.entry, told))

    def said(self, seq: int, text: str) -> Iterations:
        """A person said this after the goal."""
        return replace(self, words=(*self.words, Told(seq, text[:900]))[-_WORDS:])

    def continued(self) -> Iterations:
        """Every task may be tried again, and the place is set up again."""
        return replace(self, attempts={}, outcomes={}, regressed=False, setup=None, setup_for=-1)

    def proposed(self, b: ToolProposed) -> Iterations:
        given = b.input or {}
        if b.by_harness and not self.entry:
            return replace(self, regressed=True)
        if b.tool != tools.CHORE or b.ref:
            return self
        chore = Chore(str(given.get("chore", "")), str(given.get("command", "")))
        return replace(self, running=self.running | {b.call_id: chore})

    def chore_ended(self, call_id: str, ended: ToolEnded | None) -> Iterations:
        """A chore came to its end; None when nobody knows how."""
        chore = self.running.get(call_id)
        if chore is None:
            return self
        left = {name: one for name, one in self.running.items() if name != call_id}
        done = replace(chore, status="unknown")
        if ended is not None:
            output = ended.preview[-_OUTPUT:]
            done = replace(chore, status=ended.status, exit_code=ended.exit_code, output=output)
        if chore.kind == SETUP:
            return replace(self, running=left, setup=done, setup_for=self.n)
        return replace(self, running=left)

    def judged(self, seq: int, command: str) -> Iterations:
        """A check got its verdict."""
        return replace(self, checked=_newest(self.checked, command, seq))


def _newest(known: Mapping[str, V], name: str, value: V) -> dict[str, V]:
    made = {key: one for key, one in known.items() if key != name} | {name: value}
    while len(made) > _ENTRIES:
        del made[next(iter(made))]
    return made
