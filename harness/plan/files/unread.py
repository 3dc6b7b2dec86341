"""What a plan file holds that is not read and looks as if it were meant: a criterion, an order, a state. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from harness.plan.files import spellings
from harness.plan.files.entry_values import flat, shown, state_key
from harness.plan.files.spellings import GROUPS, LISTS, present


@dataclass(slots=True)
class Unread:
    """What was seen and not read, by key, with how many entries have it."""

    criteria: Counter[str] = field(default_factory=Counter)
    notes: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)
    """What makes the plan unusable."""

    @staticmethod
    def sentences(of: Counter[str]) -> tuple[str, ...]:
        return tuple(f"{text} (in {count} entries)" if count > 1 else text for text, count in of.items())


def look(item: Mapping[str, object], ids: set[str], told: Unread) -> None:
    """Note keys that look like a criterion, an order or a state; an order that is not read is a fault, since entries
    would begin too early.
    """
    state = state_key(item, "")
    for key, value in item.items():
        plain = spellings.plain(key)
        if key == state or value in (None, "", [], {}):
            continue
        if plain in spellings.KNOWN:
            if plain == "priority" and spellings.priority(value) is None:
                told.notes[f'"{key}": {shown(value)} is no priority: write a number, or high, medium or low'] += 1
            elif plain in map(spellings.plain, spellings.DECIDED) or (
                plain in spellings.STATUS and not _says(value, item[state])
            ):
                told.notes[f'"{key}" is not read, since "{state}" says whether it passes'] += 1
            continue
        if spellings.ORDER_LIKE.search(key):
            names = [one for one in flat(value) if one in ids]
            if names:
                told.faults.append(f'"{key}" names {names[0]} and is no order that is known: write "depends_on"')
                continue
            told.notes[f'"{key}" looks like an order and names no entry: it is not read'] += 1
        elif spellings.CRITERION_LIKE.search(key) and any(flat(value)):
            told.criteria[
                f'"{key}" looks like a criterion and is not read: write "acceptanceCriteria" or "commands"'
            ] += 1
        elif spellings.STATE_LIKE.search(key):
            told.notes[f'"{key}" looks like a state and is not read, since "{state}" is'] += 1
        elif plain in ("subtasks", "children", "subitems") and isinstance(value, list):
            told.notes[f'what stands in "{key}" is no entry of its own: move it up to have it checked'] += 1


def _says(value: object, state: object) -> bool:
    """Whether a status beside ``passes`` says nothing else."""
    passes = bool(spellings.passes(state)) if isinstance(state, str) else bool(state)
    return isinstance(value, str) and spellings.passes(value) is passes


def around(whole: object, ids: Sequence[str], told: Unread) -> Mapping[str, object]:
    """The object around the entries; an order that stands there is a fault."""
    if not isinstance(whole, dict):
        return {}
    for key, value in whole.items():
        if spellings.plain(key) in map(spellings.plain, (*LISTS, *GROUPS)) or value in (None, "", [], {}):
            continue
        if spellings.ORDER_LIKE.search(key) and set(flat(value)) & set(ids):
            told.faults.append(f'"{key}" beside the entries is not read: write "depends_on" in each entry')
        if present({key: value}, (*spellings.CRITERIA, *spellings.COMMANDS, *spellings.EITHER)):
            told.criteria[f'"{key}" beside the entries decides none of them: give its commands with --check'] += 1
    return whole
