"""Which entry of a plan comes next: by the state of its file, its phases and what depends on what. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from harness.events import types as t
from harness.events.ratchet import Plan


def phase(plan: Plan) -> t.PlanPhase | None:
    """The first phase with an entry that does not pass; None when all pass. A plan without phases is one."""
    left = {entry.phase for entry in plan.entries.values() if not plan.passes[entry.id]}
    return next((one for one in plan.work.phases if one.name in left), None)


def of_phase(plan: Plan, name: str) -> Iterator[t.PlanEntry]:
    """The entries of a phase, in the order of the file."""
    return (entry for entry in plan.entries.values() if entry.phase == name)


def waits_for(plan: Plan, entry: t.PlanEntry) -> list[str]:
    """Entries that have to pass before this one can be worked on."""
    return [name for name in entry.depends_on if not plan.passes[name]]


def next_entry(plan: Plan) -> t.PlanEntry | None:
    """The entry to work on: the one that is begun, or else the first of the current phase that does not pass, is not
    blocked and waits for no other; None when there is none.
    """
    now = phase(plan)
    if now is None:
        return None
    ready = [
        entry
        for entry in of_phase(plan, now.name)
        if not plan.passes[entry.id] and not plan.work.standing[entry.id].blocked and not waits_for(plan, entry)
    ]
    begun = next((entry for entry in ready if plan.work.standing[entry.id].begun), None)
    return begun or next(iter(ready), None)
