"""Plans as others write them: ``feature_list.json`` (a list of features) and ``prd.json`` (``userStories`` or
``tasks``). Pure.

A plan is read where it stands: every entry knows which bytes of the file are its ``passes``, so that one flip changes
one word and nothing else, whatever else the file holds.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

FEATURES = "features"
STORIES = "userStories"
TASKS = "tasks"
MAX_BYTES = 4 << 20
MAX_ENTRIES = 5000
_MOST_NAME = 200
"""Characters of an id or of a phase's name, which stand in every row about it."""
_MOST_GATE = 2000
_DEPENDS = ("depends_on", "dependsOn", "blockedBy")
_WHITE = re.compile(r"[ \t\r\n]*")
MARK = "\ufeff"
"""What some editors put before UTF-8; it stays where it is."""
_MOST_DIGITS = 1000


def _whole_number(digits: str) -> int | float:
    """A number without an end to its digits is kept in the text; what it is to us is infinite."""
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)


_DECODER = json.JSONDecoder(parse_int=_whole_number)


class BadPlan(ValueError):
    """A file is no plan; the message says where and why."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that is to be done. ``at`` and ``end`` enclose the word of its ``passes`` in the text."""

    id: str
    title: str
    criteria: tuple[str, ...]
    passes: bool
    at: int
    end: int
    phase: str = ""
    gate: str = ""
    """Why its phase may not begin without a person's word; empty when it may."""
    depends_on: tuple[str, ...] = ()
    priority: int = 0
    """The lowest comes first; 0 = none given."""
    about: str = ""
    """What it is for, in more words than its title; empty when the title is all."""
    wording: str = ""
    """The whole entry but its ``passes``, in a canonical form: what may not be reworded."""


@dataclass(frozen=True, slots=True)
class Group:
    """A phase as the file itself lists it: its name, its gate (empty: none), and the entries it names."""

    name: str
    gate: str = ""
    entries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan file: its text, its form (features, userStories or tasks), and its entries in the order of the file."""

    text: str
    form: str
    entries: tuple[Entry, ...]
    around: str
    """The rest of the file in a canonical form."""
    groups: tuple[Group, ...] = ()

    @property
    def passed(self) -> int:
        return sum(1 for entry in self.entries if entry.passes)


def read(data: bytes) -> Plan:
    """The plan in a file's bytes. Raises BadPlan."""
    if len(data) > MAX_BYTES:
        raise BadPlan(f"a plan has at most {MAX_BYTES >> 20} MiB")
    try:
        text = data.decode("utf-8")
        whole = json.loads(text.removeprefix(MARK), object_pairs_hook=_unique, parse_int=_whole_number)
    except UnicodeDecodeError as exc:
        raise BadPlan(f"it is no UTF-8 at byte {exc.start}") from exc
    except (ValueError, RecursionError) as exc:
        raise BadPlan(f"it is no JSON: {exc}") from exc
    form, items, path = _form(whole)
    if len(items) > MAX_ENTRIES:
        raise BadPlan(f"a plan has at most {MAX_ENTRIES} entries")
    spans = _spans(text, path)
    entries = tuple(_entry(form, index, item, spans.get(index)) for index, item in enumerate(items))
    if len(ids := [entry.id for entry in entries]) != len(set(ids)):
        raise BadPlan("two entries have the same id")
    around = {k: v for k, v in whole.items() if k != form} if isinstance(whole, dict) else {}
    return Plan(text, form, entries, _canonical(around), _groups(around))


def flipped(plan: Plan, passes: Mapping[int, bool]) -> Plan:
    """The plan with the ``passes`` of these entries, by index, set; no other byte of its text changes."""
    parts: list[str] = []
    done = 0
    for index in sorted(passes):
        entry = plan.entries[index]
        parts += [plan.text[done : entry.at], "true" if passes[index] else "false"]
        done = entry.end
    return read("".join([*parts, plan.text[done:]]).encode())


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("an object has the same key twice")
    return made


def _form(whole: object) -> tuple[str, list[object], tuple[str, ...]]:
    if isinstance(whole, list):
        return FEATURES, whole, ()
    if isinstance(whole, dict):
        for form in (STORIES, TASKS):
            if isinstance(whole.get(form), list):
                return form, whole[form], (form,)
    raise BadPlan("it is neither a list of features nor an object with userStories or tasks")


def _entry(form: str, index: int, item: object, span: tuple[int, int] | None) -> Entry:
    where = f"entry {index + 1}"
    if not isinstance(item, dict):
        raise BadPlan(f"{where} is no object")
    if span is None or not isinstance(item.get("passes"), bool):
        raise BadPlan(f"{where} has no passes that is true or false")
    names = ("description", "steps", "") if form == FEATURES else ("title", "acceptanceCriteria", "id")
    title = item.get(names[0]) or item.get("description") or item.get("title")
    if not isinstance(title, str) or not title.strip():
        raise BadPlan(f"{where} has no {names[0]}")
    name = item.get("id", f"F-{index + 1:03d}" if form == FEATURES else None)
    if not isinstance(name, str | int) or isinstance(name, bool) or not str(name).strip():
        raise BadPlan(f"{where} has no id")
    return Entry(
        id=_within(str(name), _MOST_NAME, where, "id"),
        title=title,
        criteria=_texts(item, names[1], where),
        passes=item["passes"],
        at=span[0],
        end=span[1],
        phase=_within(_phase(item), _MOST_NAME, where, "phase"),
        gate=_gate(item.get("gate"), where),
        depends_on=_texts(item, next((key for key in _DEPENDS if key in item), _DEPENDS[0]), where),
        priority=_priority(item),
        about=_about(item, title),
        wording=_canonical({k: v for k, v in item.items() if k != "passes"}),
    )


def _within(text: str, most: int, where: str, what: str) -> str:
    if len(text) > most:
        raise BadPlan(f"{where}: its {what} has {len(text):,} characters, over {most:,}")
    return text


def _about(item: Mapping[str, object], title: str) -> str:
    value = item.get("description")
    return value.strip() if isinstance(value, str) and value != title else ""


def _priority(item: Mapping[str, object]) -> int:
    value = item.get("priority")
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 31 else 0


def _texts(item: Mapping[str, object], name: str, where: str) -> tuple[str, ...]:
    value = item.get(name, [])
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise BadPlan(f"{where}: {name} is no list of texts")
    return tuple(value)


def _phase(item: Mapping[str, object]) -> str:
    name = item.get("phase")
    return str(name).strip() if isinstance(name, str | int) and not isinstance(name, bool) else ""


def _gate(value: object, where: str) -> str:
    if value is None or value is False:
        return ""
    if value is True:
        return "a person decides whether it begins"
    if not isinstance(value, str) or not value.strip():
        raise BadPlan(f"{where}: gate is neither true nor words")
    return _within(value.strip(), _MOST_GATE, where, "gate")


def _groups(around: Mapping[str, object]) -> tuple[Group, ...]:
    """What stands under ``phases``: names, or objects with a name and perhaps a gate and entries; anything else that
    somebody keeps there is not ours.
    """
    listed = around.get("phases")
    made: list[Group] = []
    for index, item in enumerate(listed if isinstance(listed, list) else []):
        where = f"phase {index + 1}"
        if isinstance(item, str) and item.strip():
            made.append(Group(_within(item.strip(), _MOST_NAME, where, "name")))
        elif isinstance(item, dict) and isinstance(name := item.get("name") or item.get("id"), str) and name.strip():
            name = _within(name.strip(), _MOST_NAME, where, "name")
            made.append(Group(name, _gate(item.get("gate"), where), _texts(item, "entries", where)))
    if len({group.name for group in made}) != len(made):
        raise BadPlan("two phases have the same name")
    return tuple(made)


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)


# -- where each `passes` stands --------------------------------------------------------------------


def _spans(text: str, path: tuple[str, ...]) -> dict[int, tuple[int, int]]:
    """By entry, where the value of its ``passes`` begins and ends. The text is known to be JSON without double keys."""
    at = _skip(text, len(text) - len(text.removeprefix(MARK)))
    for name in path:
        at = next(value for key, value in _members(text, at) if key == name)
    found: dict[int, tuple[int, int]] = {}
    for index, item in enumerate(_elements(text, at)):
        if text[item] == "{":
            for key, value in _members(text, item):
                if key == "passes":
                    found[index] = (value, _after(text, value))
    return found


def _skip(text: str, at: int) -> int:
    match = _WHITE.match(text, at)
    return match.end() if match is not None else at


def _members(text: str, at: int) -> Iterator[tuple[str, int]]:
    """(key, where its value begins) of the object that begins at ``at``."""
    at = _skip(text, at + 1)
    while text[at] != "}":
        key, end = _DECODER.raw_decode(text, at)
        value = _skip(text, _skip(text, end) + 1)
        yield key, value
        at = _skip(text, _after(text, value))
        if text[at] == ",":
            at = _skip(text, at + 1)


def _elements(text: str, at: int) -> Iterator[int]:
    """Where each element of the list that begins at ``at`` begins."""
    at = _skip(text, at + 1)
    while text[at] != "]":
        yield at
        at = _skip(text, _after(text, at))
        if text[at] == ",":
            at = _skip(text, at + 1)


def _after(text: str, at: int) -> int:
    """Where the value that begins at ``at`` has ended."""
    return _DECODER.raw_decode(text, at)[1]
