"""Which entry of a plan comes next: by the state of its file, its phases and what depends on what. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from harness.events import types as t
from harness.projections.state.protected_files import PlanProgress

_LAST = 1 << 62


def phase(plan: PlanProgress, settled: Collection[str] = ()) -> t.PlanPhase | None:
    """The first phase with an entry that neither passes nor is ``settled``; None when there is none. A plan without
    phases is one.
    """
    left = {e.phase for e in plan.entries.values() if not plan.passes[e.id] and e.id not in settled}
    return next((one for one in plan.work.phases if one.name in left), None)


def of_phase(plan: PlanProgress, name: str) -> Iterator[t.PlanEntry]:
    """The entries of a phase, in the order of the file."""
    return (entry for entry in plan.entries.values() if entry.phase == name)


def waits_for(plan: PlanProgress, entry: t.PlanEntry, settled: Collection[str] = ()) -> list[str]:
    """Entries that have to pass before this one can be worked on."""
    return [name for name in entry.depends_on if not plan.passes[name] and name not in settled]


def next_entry(plan: PlanProgress, settled: Collection[str] = (), given_up: Collection[str] = ()) -> t.PlanEntry | None:
    """The entry to work on: the one that is begun, or else, by priority, the first of the current phase that does not
    pass, is not blocked and waits for no other; None when there is none.

    ``settled`` are entries that no check decides and that the agent says are done, ``given_up`` those that are not
    tried again.
    """
    now = phase(plan, settled)
    if now is None:
        return None
    ready = [
        entry
        for entry in of_phase(plan, now.name)
        if not plan.passes[entry.id]
        and entry.id not in settled
        and entry.id not in given_up
        and not plan.work.standing[entry.id].blocked
        and not waits_for(plan, entry, settled)
    ]
    begun = next((entry for entry in ready if plan.work.standing[entry.id].begun), None)
    return begun or min(ready, key=lambda entry: entry.priority or _LAST, default=None)
