"""The phases of a plan and their gates, and whether its entries can be worked on in an order at all. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from graphlib import CycleError, TopologicalSorter

from harness.domain.calls.gate_kinds import GateKind
from harness.plan.files.formats import BadPlan, Entry, Plan

_ABOVE = re.compile(r"\babove \$(?P<usd>\d{1,7}(?:\.\d{1,9})?)(?![\d.])", re.IGNORECASE)
_ON = re.compile(r"(?:^|;)\s*on:(?P<kinds>.*)$", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Phase:
    """Entries that belong together and come before those of the next phase.

    ``gate`` is why it needs a person's word, empty when it does not; ``above_nano``: only once the session has spent so
    much (nano-USD). ``asks``: each call of it with such an effect needs a word of its own.
    """

    name: str
    gate: str = ""
    above_nano: int | None = None
    asks: tuple[GateKind, ...] = ()


@dataclass(frozen=True, slots=True)
class Phased:
    """Phases in their order, and by entry the name of its own. A plan that names none has one, without a name."""

    phases: tuple[Phase, ...]
    of: Mapping[str, str]


def phased(plan: Plan, gates: Sequence[str] = ()) -> Phased:
    """The phases of a plan with the gates of its file and those given at launch (``PHASE=reason``).

    Raises BadPlan for a plan with faults, a gate of no phase, and entries that wait for one another.
    """
    if plan.faults:
        raise BadPlan(plan.faults[0])
    listed = {name: group.name for group in plan.groups for name in group.entries}
    of = {entry.id: listed.get(entry.id, entry.phase) for entry in plan.entries}
    told = {group.name: Phase(group.name) for group in plan.groups if group.name in of.values()}
    told |= {name: Phase(name) for name in of.values() if name not in told}
    for name, reason in _reasons(plan, of, gates):
        if name not in told:
            named = ", ".join(filter(None, told)) or "the plan names none"
            raise BadPlan(f"there is no phase {name!r} for the gate; its phases: {named}")
        told[name] = _gated(told[name], reason)
    made = Phased(tuple(told.values()), of)
    _in_order(plan.entries, made)
    return made


def _reasons(plan: Plan, of: Mapping[str, str], gates: Iterable[str]) -> Iterable[tuple[str, str]]:
    yield from ((group.name, group.gate) for group in plan.groups if group.gate and group.name in of.values())
    yield from ((of[entry.id], entry.gate) for entry in plan.entries if entry.gate)
    for given in gates:
        name, equals, reason = given.partition("=")
        if not equals:
            reason = name
            name = ""
        if not reason.strip():
            raise BadPlan(f"the gate {given!r} says no reason; write PHASE=why a person decides")
        yield name.strip(), reason.strip()


def _gated(phase: Phase, reason: str) -> Phase:
    """With one more reason; of several sums the smallest counts, and a gate without one counts from the beginning.

    What stands behind ``on:`` are kinds of effect, each with a word of its own, and hold nothing back at the beginning.
    Raises BadPlan.
    """
    if (named := _ON.search(reason)) is not None:
        kinds, sums = _kinds(named["kinds"])
        phase = replace(phase, asks=tuple(kind for kind in GateKind if kind in {*phase.asks, *kinds}))
        reason = "; ".join(filter(None, [reason[: named.start()].strip(), *sums]))
        if not reason:
            return phase
    found = _ABOVE.search(reason)
    above = int(Decimal(found["usd"]) * 10**9) if found is not None else None
    if phase.gate:
        reason = reason if reason == phase.gate else f"{phase.gate}; {reason}"
        above = None if phase.above_nano is None or above is None else min(above, phase.above_nano)
    return replace(phase, gate=reason, above_nano=above)


def _kinds(listed: str) -> tuple[list[GateKind], list[str]]:
    """The kinds of effect in a list with commas, and the sums in it (``spend above $5``). Raises BadPlan."""
    kinds: list[GateKind] = []
    sums: list[str] = []
    for name in (" ".join(part.split()).lower() for part in listed.split(",")):
        if name in list(GateKind):
            kinds.append(GateKind(name))
        elif _ABOVE.fullmatch(name.removeprefix("spend ")):
            sums.append(name)
        else:
            known = ", ".join([*GateKind, "spend above $N"])
            raise BadPlan(f"a gate cannot ask on {name[:60]!r}; it can on: {known}")
    return kinds, sums


def _in_order(entries: Sequence[Entry], made: Phased) -> None:
    """Raise BadPlan when some entry could never come: it waits for itself, for nothing that exists, or for a later
    phase.
    """
    place = {phase.name: index for index, phase in enumerate(made.phases)}
    for entry in entries:
        for name in entry.depends_on:
            if place[made.of[name]] > place[made.of[entry.id]]:
                raise BadPlan(f"{entry.id} depends on {name}, which belongs to a later phase")
    try:
        TopologicalSorter({entry.id: entry.depends_on for entry in entries}).prepare()
    except CycleError as exc:
        raise BadPlan(f"entries wait for one another: {' → '.join(map(str, exc.args[1]))}") from exc
