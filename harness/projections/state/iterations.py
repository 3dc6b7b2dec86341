"""Where a session stands in its plan: the task at hand, attempts, what was tried, and the harness's own chores. Pure.

The fold holds an `Iterations`; what is due by it says `harness.plan.iterations`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeVar

from harness.domain.calls.call_states import CallEnd
from harness.domain.calls.chores import COMMIT, SETUP
from harness.events.calls.call_events import ToolEnded, ToolProposed
from harness.events.plan.iteration_events import PASSED, UNDECIDED, ApproachFailed, IterationEnded, IterationStarted
from harness.events.work.checkpoint_events import Forked
from harness.tools import registry

_OUTPUT = 3000
"""Characters kept of a chore's output, its end."""
_WORDS = 6
_APPROACHES = 5
_ENTRIES = 5000
V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Told:
    """Words, and the record they come from, of another session's log when ``of`` names one."""

    seq: int
    text: str
    why: str = ""
    of: str = ""

    @property
    def ref(self) -> str:
        return f"[#{self.seq} of session {self.of}]" if self.of else f"[#{self.seq}]"


@dataclass(frozen=True, slots=True)
class Chore:
    """A command that the harness runs on its own account; ``status`` is empty while it runs."""

    kind: str
    command: str
    status: str = ""
    exit_code: int | None = None
    output: str = ""
    call_id: str = ""
    size: int = 0
    """Bytes of the whole output; of ``output`` when that is all."""

    @property
    def good(self) -> bool:
        return self.status == CallEnd.OK and not self.exit_code

    @property
    def how(self) -> str:
        return self.status if self.exit_code is None else f"exit {self.exit_code}"


def chore_of(b: ToolProposed) -> Chore | None:
    """The chore that a call is; None for any other call."""
    given = b.input or {}
    if b.tool != registry.CHORE or not b.own:
        return None
    return Chore(str(given.get("chore", "")), str(given.get("command", "")))


def done(chore: Chore, ended: ToolEnded | None) -> Chore:
    """A chore that came to its end; None when nobody knows how."""
    if ended is None:
        return replace(chore, status="unknown")
    return replace(
        chore,
        status=ended.status,
        exit_code=ended.exit_code,
        output=ended.preview[-_OUTPUT:],
        call_id=ended.call_id,
        size=ended.size,
    )


@dataclass(frozen=True, slots=True)
class Began:
    """Where work on a task began: the commit that it stood on, and the first iteration whose changes a comparison with
    that may show.
    """

    head: str
    since: int


@dataclass(frozen=True, slots=True)
class Iterations:
    """``entry`` is the task at hand, empty between two of them."""

    n: int = 0
    entry: str = ""
    started_seq: int = -1
    began: dict[str, Began] = field(default_factory=dict)
    """By entry, its first attempt of all: what it committed itself stays in the comparison, however it goes on."""
    newest: dict[str, int] = field(default_factory=dict)
    """By entry, the newest iteration that worked on it."""
    loose: int = 0
    """The first iteration whose changes no commit of the harness has yet; 0: none."""
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
    uncommitted: str = ""
    """The entry that is done, and whose changes are to be committed."""
    unnoted: IterationEnded | None = None
    """The task that ended, and whose record of progress nobody looked at yet."""

    def handed(self, forked: Forked) -> Iterations:
        """What the session that this one began from hands on."""
        approaches = dict(self.approaches)
        for one in forked.failed:
            told = Told(one.seq, one.text, one.why, one.sid)
            approaches[one.entry] = (*approaches.get(one.entry, ()), told)[-_APPROACHES:]
        words = tuple(Told(one.seq, one.text, of=one.sid) for one in forked.decided)[-_WORDS:]
        return replace(self, approaches=approaches, words=words)

    def started(self, seq: int, b: IterationStarted) -> Iterations:
        attempts = self.attempts | {b.entry: self.attempts.get(b.entry, 0) + 1}
        began = {b.entry: Began(b.head, self.loose or b.n)} | self.began
        newest = self.newest | {b.entry: b.n}
        return replace(
            self,
            n=b.n,
            entry=b.entry,
            started_seq=seq,
            began=began,
            newest=newest,
            attempts=attempts,
            regressed=False,
        )

    def ended(self, b: IterationEnded) -> Iterations:
        left = b.entry if b.outcome in (PASSED, UNDECIDED) else ""
        outcomes = self.outcomes | {b.entry: b.outcome}
        loose = self.loose or self.n
        return replace(self, entry="", outcomes=outcomes, regressed=False, uncommitted=left, unnoted=b, loose=loose)

    def beside(self, entry: str) -> tuple[str, ...]:
        """The other tasks whose work may be in the comparison with where work on this one began."""
        began = self.began.get(entry)
        return tuple(e for e, n in self.newest.items() if e != entry and began is not None and n >= began.since)

    def noted(self) -> Iterations:
        """The record of progress was followed."""
        return replace(self, unnoted=None)

    def failed(self, seq: int, b: ApproachFailed) -> Iterations:
        told = (*self.approaches.get(b.entry, ()), Told(seq, b.what, b.why))[-_APPROACHES:]
        return replace(self, approaches=_newest(self.approaches, b.entry, told))

    def mistaken(self, seq: int, reason: str) -> Iterations:
        """The agent says that what it assumed for the task at hand is wrong."""
        told = (*self.approaches.get(self.entry, ()), Told(seq, reason, "assumed, and proved wrong"))[-_APPROACHES:]
        return replace(self, approaches=_newest(self.approaches, self.entry, told)) if self.entry else self

    def said(self, seq: int, text: str) -> Iterations:
        """A person said this after the goal."""
        return replace(self, words=(*self.words, Told(seq, text[:900]))[-_WORDS:])

    def continued(self) -> Iterations:
        """Every task may be tried again, and the place is set up again."""
        return replace(self, attempts={}, outcomes={}, regressed=False, setup=None, setup_for=-1)

    def proposed(self, b: ToolProposed) -> Iterations:
        if b.by_harness and not self.entry:
            return replace(self, regressed=True)
        chore = chore_of(b)
        if chore is None or chore.kind not in (SETUP, COMMIT):
            return self
        left = "" if chore.kind == COMMIT else self.uncommitted
        return replace(self, running=self.running | {b.call_id: chore}, uncommitted=left)

    def chore_ended(self, call_id: str, ended: ToolEnded | None) -> Iterations:
        """A chore came to its end; None when nobody knows how."""
        chore = self.running.get(call_id)
        if chore is None:
            return self
        left = {name: one for name, one in self.running.items() if name != call_id}
        if chore.kind == SETUP:
            return replace(self, running=left, setup=done(chore, ended), setup_for=self.n)
        return replace(self, running=left, loose=0 if done(chore, ended).good else self.loose)

    def judged(self, seq: int, command: str) -> Iterations:
        """A check got its verdict."""
        return replace(self, checked=_newest(self.checked, command, seq))


def _newest(known: Mapping[str, V], name: str, value: V) -> dict[str, V]:
    made = {key: one for key, one in known.items() if key != name} | {name: value}
    while len(made) > _ENTRIES:
        del made[next(iter(made))]
    return made
