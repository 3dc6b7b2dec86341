"""Which task of its plan a session works on next, and what has to be done before. Pure.

Chosen by what the files and the log say, never by a counter: the first entry, by priority, that does not pass.
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import TypeAlias

from harness.domain.calls.approval_kind import Request
from harness.domain.calls.chores import COMMIT, SETUP
from harness.domain.states import Desired
from harness.domain.text.formatting import line
from harness.events.plan.iteration_events import NEVER, PER_ITERATION, IterationEnded, Ways
from harness.events.plan.plan_events import PlanEntry
from harness.plan import already, gates, order
from harness.plan.due import due as flips_due
from harness.projections.state.session_state import SessionState

_COMMIT_S = 120
REGRESSION = 2
"""Entries that pass and are checked again before new work."""


@dataclass(frozen=True, slots=True)
class Prepare:
    """Run a chore in the sandbox: the command, and the seconds that it may take."""

    kind: str
    command: str
    seconds: int


@dataclass(frozen=True, slots=True)
class Recheck:
    """Run the checks of what passed: a regression is found before new work."""

    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Note:
    """Follow the record of progress of a task that ended."""

    ended: IterationEnded


@dataclass(frozen=True, slots=True)
class Begin:
    """Start on an entry, in a context of its own."""

    entry: str
    n: int
    attempt: int


Due: TypeAlias = Note | Prepare | Recheck | Begin


def ways_of(s: SessionState) -> Ways:
    """How this session goes through its plan."""
    return s.intent.ways if s.intent is not None else Ways()


def by_task(s: SessionState) -> bool:
    """True when the harness gives out one entry at a time."""
    return s.plan is not None and ways_of(s).fresh != NEVER


def due(s: SessionState) -> Due | None:
    """What the supervisor has to do before anybody thinks on; None within a task, or when there is no further one."""
    if (
        not by_task(s)
        or s.created is None
        or s.ended is not None
        or s.finish_up is not None
        or s.desired != Desired.RUNNING
    ):
        return None
    if s.iterations.entry or s.request is not None or s.calls.open or s.unjudged or not s.ratchet.clear:
        return None
    if flips_due(s):
        return None
    chosen = next_entry(s)
    if s.iterations.unnoted is not None and s.plan is not None and s.plan.progress:
        return Note(s.iterations.unnoted)
    if s.iterations.uncommitted and ways_of(s).commit:
        return Prepare(COMMIT, _commit(s), _COMMIT_S)
    if chosen is None or gates.closed(s) is not None:
        return None
    if (setup := _setup(s)) is not None:
        return setup
    if s.before.runs or s.before.lacking(s.criteria):
        return None  # what they say before the work is known first
    if already.due(s) or any(a.kind == Request.PLAN for a in s.approvals.values()):
        return None  # a person is asked first
    return _regression(s) or Begin(chosen.id, s.iterations.n + 1, s.iterations.attempts.get(chosen.id, 0) + 1)


def next_entry(s: SessionState) -> PlanEntry | None:
    """The entry to work on next, as `order.next_entry` has it; none that was tried as often as allowed."""
    if s.plan is None:
        return None
    at = s.iterations
    given_up = [name for name, tried in at.attempts.items() if tried >= ways_of(s).attempts]
    return order.next_entry(s.plan, gates.settled(s), given_up)


def stuck(s: SessionState) -> tuple[str, ...]:
    """Entries that a check decides, or the judge for each task, that do not pass and are not tried again; nothing
    while a task is at hand.
    """
    if s.plan is None or not by_task(s) or s.iterations.entry or next_entry(s) is not None:
        return ()
    passes = s.plan.passes
    held = already.entries(s)
    own = [e for e in s.plan.entries.values() if not e.undecided and not s.masking.only(e.checks)]
    decided = [e.id for e in own if e.id not in held or e.id in s.plan.by_word]
    return tuple(name for name in s.plan.entries if not passes[name] and (name in decided or s.judging.each_task))


def rounds(s: SessionState) -> int:
    """How often the agent may claim that a task is done before the attempt is over."""
    return 1 if s.iterations.entry and ways_of(s).fresh == PER_ITERATION else s.max_rounds


def looks(s: SessionState) -> int:
    """How often the judge may look at the task at hand before the attempt is over, or else at the whole."""
    if s.judging.wanted is None:
        return 0
    once = s.iterations.entry and s.judging.each_task and ways_of(s).fresh == PER_ITERATION
    return 1 if once else s.judging.wanted.cycles


def _commit(s: SessionState) -> str:
    """A script that commits whatever the task at its end left uncommitted; nothing when there is nothing."""
    assert s.plan is not None
    entry = s.plan.entries[s.iterations.uncommitted]
    words = f"{line(entry.title, 72)}\n\n{line(entry.id)} of {s.plan.path}: {s.iterations.outcomes[entry.id]}"
    return f"git add -A && {{ git diff --cached --quiet || git commit -q --no-verify -m {shlex.quote(words)}; }}"


def _setup(s: SessionState) -> Prepare | None:
    """Once when the session begins or goes on, and again before each task for as long as it fails."""
    assert s.plan is not None
    at = s.iterations
    if not s.plan.setup or (at.setup is not None and (at.setup.good or at.setup_for == at.n)):
        return None
    return Prepare(SETUP, f"sh ./{s.plan.setup}", ways_of(s).setup_s)


def _regression(s: SessionState) -> Recheck | None:
    """Checks of those entries that pass and were not looked at for longest."""
    assert s.plan is not None
    at = s.iterations
    if at.regressed:
        return None
    passes = s.plan.passes
    seen = {
        entry.id: min(at.checked.get(command, -1) for command in entry.checks)
        for entry in s.plan.entries.values()
        if passes[entry.id] and entry.checks
    }
    old = sorted((name for name in seen if seen[name] < max(0, at.started_seq)), key=lambda name: seen[name])
    commands = [command for name in old[:REGRESSION] for command in s.plan.entries[name].checks]
    return Recheck(tuple(dict.fromkeys(commands))) if commands else None
