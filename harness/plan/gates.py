"""Whether the current phase of a plan may go on, and whether it begins. Pure."""

from __future__ import annotations

from itertools import dropwhile

from harness.events import types as t
from harness.events.plan.iteration_events import UNDECIDED
from harness.plan import order
from harness.projections.state.protected_files import PlanProgress
from harness.projections.state.session_state import SessionState

_LISTED = 30
_NEWEST = 8
"""Entries of what was done before that a card names."""


def settled(s: SessionState) -> list[str]:
    """Entries that no check decides and that the agent says are done."""
    return [name for name, outcome in s.iterations.outcomes.items() if outcome == UNDECIDED]


def current(s: SessionState) -> t.PlanPhase | None:
    """The phase that is worked on; None without a plan, or when nothing of it is left."""
    return order.phase(s.plan, settled(s)) if s.plan is not None else None


def closed(s: SessionState) -> t.PlanPhase | None:
    """The current phase when its gate holds it: nobody opened it, and the sum it names, if it names one, was spent."""
    now = current(s)
    return now if now is not None and _shut(s, now) else None


def held(s: SessionState) -> frozenset[str]:
    """The phases that cannot have begun: the first with something left whose gate is closed, and all behind it."""
    if s.plan is None:
        return frozenset()
    left = {entry.phase for entry in s.plan.entries.values() if not s.plan.passes[entry.id]}
    behind = dropwhile(lambda phase: phase.name not in left or not _shut(s, phase), s.plan.work.phases)
    return frozenset(phase.name for phase in behind)


def _shut(s: SessionState, phase: t.PlanPhase) -> bool:
    """A gate that nobody opened, from the sum on that it names, if it names one."""
    if s.plan is None or not phase.gate or phase.name in s.plan.work.opened:
        return False
    return phase.above_nano is None or s.spent_nano >= phase.above_nano


def asking(s: SessionState) -> t.PlanPhase | None:
    """The phase in which calls are made now when its gate asks about kinds of effect; when nothing is left of the
    plan, its last.
    """
    if s.plan is None:
        return None
    now = current(s) or s.plan.work.phases[-1]
    return now if now.asks else None


def beginning(s: SessionState) -> t.PlanPhase | None:
    """The current phase when it begins now; a plan that is one phase without a gate has no beginning."""
    plan = s.plan
    now = current(s)
    if plan is None or now is None or now.name in plan.work.begun or closed(s) is not None:
        return None
    return now if now.name or now.gate or len(plan.work.phases) > 1 else None


def title(phase: t.PlanPhase, begun: bool) -> str:
    """What a person is asked, in one line."""
    what = "goes on" if begun else "begins"
    return f"{phase.name or 'the plan'} {what} only with your word: {phase.gate}"


def detail(plan: PlanProgress, phase: t.PlanPhase, spent: str) -> dict[str, str]:
    """What the card says beside its title: what was done, what comes, and what the word does not cover."""
    entries = list(order.of_phase(plan, phase.name))
    before = [entry for entry in plan.entries.values() if entry.phase != phase.name and plan.passes[entry.id]]
    return {
        "phase": phase.name or "(the whole plan)",
        "gate": phase.gate,
        "done": _done(before, plan),
        "comes": _listed(entries, plan),
        "spent": spent,
        "may": "work on these entries; whatever leaves the sandbox is asked for by itself, as before",
    }


def _done(before: list[t.PlanEntry], plan: PlanProgress) -> str:
    left = len(before) - _NEWEST
    first = f"{len(before)} entries, the last of them:\n" if left > 0 else ""
    return first + _listed(before[-_NEWEST:], plan) or "nothing yet"


def _listed(entries: list[t.PlanEntry], plan: PlanProgress) -> str:
    lines = [f"{'✔' if plan.passes[entry.id] else '·'} {entry.id} {entry.title}" for entry in entries[:_LISTED]]
    more = len(entries) - _LISTED
    return "\n".join([*lines, *([f"and {more} more"] if more > 0 else [])])
