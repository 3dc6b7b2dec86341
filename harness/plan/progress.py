"""Which entries of a plan pass, by what the harness saw of their checks and by nothing else. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.domain import outcomes
from harness.domain.outcomes import PASSES
from harness.plan.files import criteria
from harness.plan.files.formats import BadPlan, Entry, Plan, flipped

MAX_CHECKS = 300
"""Commands that decide a plan, at most: all of them run at its end."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """An entry as it is worked on: the commands that decide it, and how many of its criteria none decides. ``judged``:
    it passes only with the judge's word, whatever they say.
    """

    id: str
    title: str
    checks: tuple[str, ...]
    undecided: int
    passes: bool
    priority: int = 0
    judged: bool = False
    held: bool = False
    """All its criteria held before the work, and it never passed: it passes by a person's word alone."""
    by_word: bool = False
    """It has that."""


@dataclass(frozen=True, slots=True)
class Seen:
    """The newest verdict on a check, the call that it was given on, and how it stands against what it said before the
    work; ``masked`` when its exit code decides nothing.
    """

    passed: bool
    call: str
    outcome: str = PASSES
    masked: bool = False


@dataclass(frozen=True, slots=True)
class Flip:
    """An entry's ``passes`` becomes another one; ``calls`` are the evidence."""

    entry: str
    passes: bool
    why: str
    calls: tuple[str, ...]


def wanted(entry: Entry) -> Wanted:
    """What decides an entry of a plan."""
    decided = criteria.commands(entry.criteria)
    undecided = len(entry.criteria) - len(decided) or (0 if decided else 1)
    return Wanted(
        entry.id, entry.title, tuple(dict.fromkeys(c.command for c in decided)), undecided, entry.passes, entry.priority
    )


def checks(entries: Iterable[Wanted]) -> list[str]:
    """The commands that decide these entries, each once. Raises BadPlan for more than `MAX_CHECKS`."""
    found = list(dict.fromkeys(command for entry in entries for command in entry.checks))
    if len(found) > MAX_CHECKS:
        raise BadPlan(
            f"it asks for {len(found):,} checks, more than {MAX_CHECKS}: give it in parts, or let one command decide"
            " several entries"
        )
    return found


def flips(
    entries: Iterable[Wanted], verdicts: Mapping[str, Seen], judged: Mapping[str, bool] | None = None
) -> list[Flip]:
    """What has to change. ``entries`` carry their ``passes`` as it stands.

    It turns true only when every criterion is decided by a check that passed, or the rest by the judge (``judged``, by
    entry; an entry may want its word in any case), false when one of them fails.
    """
    due: list[Flip] = []
    for entry in entries:
        seen = {command: verdicts[command] for command in entry.checks if command in verdicts}
        blind = bool(seen) and all(one.masked for one in seen.values())
        asked = entry.undecided or entry.judged or blind
        word = (judged or {}).get(entry.id) if asked else None
        failing = [command for command, one in seen.items() if not one.passed]
        calls = tuple(one.call for one in seen.values())
        sure = len(seen) == len(entry.checks)
        told = outcomes.told(one.outcome for one in seen.values())
        beside = f": {told}" if told else ""
        if entry.passes and failing:
            due.append(Flip(entry.id, False, f"{failing[0]} does not pass", calls))
        elif not entry.passes and not asked and seen and not failing and sure and (entry.by_word or not entry.held):
            beside += "; a person said that it may" if entry.by_word else ""
            due.append(Flip(entry.id, True, f"{len(seen)} of {len(seen)} checks passed{beside}", calls))
        elif entry.passes and word is False:
            due.append(Flip(entry.id, False, "the judge: it does not hold", calls))
        elif not entry.passes and word and not failing and sure:
            due.append(Flip(entry.id, True, f"the judge: it holds; {len(seen)} checks passed{beside}", calls))
    return due


def standing(plan: Plan, passes: Mapping[str, bool]) -> Plan:
    """The plan with each entry's ``passes`` as given; entries that are not named stay."""
    return flipped(
        plan,
        {
            index: passes[entry.id]
            for index, entry in enumerate(plan.entries)
            if passes.get(entry.id, entry.passes) != entry.passes
        },
    )
