"""Plans as others write them: a list of features, stories or tasks in JSON, in the spellings of `spellings`. Pure.

A plan is read where it stands: every entry knows which bytes of the file say whether it passes, so that one flip
changes one word and nothing else, whatever else the file holds.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from harness.plan.files import spellings, unread
from harness.plan.files.entry_values import SHOWN, criteria_of, names_in, shown, state_key
from harness.plan.files.entry_values import BadPlan as BadPlan
from harness.plan.files.spans import EACH, MARK, member, places, whole_number
from harness.plan.files.spellings import FEATURES, LISTS, present
from harness.plan.files.unread import Unread

MAX_BYTES = 4 << 20
MAX_ENTRIES = 5000
_MOST_NAME = 200
"""Characters of an id or of a phase's name, which stand in every row about it."""
_MOST_GATE = 2000


@dataclass(frozen=True, slots=True)
class Entry:
    """One thing that is to be done. ``at`` and ``end`` enclose the word in the text that says whether it passes."""

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
    """The whole entry but that word, in a canonical form: what may not be reworded."""
    words: tuple[str, str] = ("false", "true")
    """That word as the file spells it, for an entry that does not pass and for one that does."""


@dataclass(frozen=True, slots=True)
class Group:
    """A phase as the file itself lists it: its name, its gate (empty: none), and the entries it names."""

    name: str
    gate: str = ""
    entries: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """A plan file: its text, its form (what its list of entries is called), and its entries in their order."""

    text: str
    form: str
    entries: tuple[Entry, ...]
    around: str
    """The rest of the file in a canonical form."""
    groups: tuple[Group, ...] = ()
    unread: tuple[str, ...] = ()
    """What looks like a criterion and is not read as one, a sentence each."""
    faults: tuple[str, ...] = ()
    """Why nobody can work on it although it can be read."""
    notes: tuple[str, ...] = ()
    """What else was not read and looks as if it should be."""

    @property
    def passed(self) -> int:
        return sum(1 for entry in self.entries if entry.passes)


@dataclass(frozen=True, slots=True)
class _Found:
    """Where the entries stand: the path to their lists, the lists with the name of the phase that each is in, and what
    a list is called.
    """

    path: tuple[str | None, ...]
    lists: tuple[tuple[str, object], ...]
    form: str
    groups: tuple[Group, ...] = ()


def read(data: bytes) -> Plan:
    """The plan in a file's bytes. Raises BadPlan."""
    if len(data) > MAX_BYTES:
        raise BadPlan(f"a plan has at most {MAX_BYTES >> 20} MiB")
    try:
        text = data.decode("utf-8")
        whole = json.loads(text.removeprefix(MARK), object_pairs_hook=_unique, parse_int=whole_number)
    except UnicodeDecodeError as exc:
        raise BadPlan(f"it is no UTF-8 at byte {exc.start}") from exc
    except (ValueError, RecursionError) as exc:
        raise BadPlan(f"it is no JSON: {exc}") from exc
    found = _form(whole)
    items = [(phase, name, item) for phase, one in found.lists for name, item in _items(one)]
    if len(items) > MAX_ENTRIES:
        raise BadPlan(f"a plan has at most {MAX_ENTRIES} entries")
    told = Unread()
    stands = places(text, (*found.path, EACH))
    made: dict[int, tuple[Entry, Mapping[str, object]]] = {}
    aside: dict[str, object] = {}
    for index, (phase, name, item) in enumerate(items):
        where = f"entry {index + 1}"
        if not isinstance(item, dict):
            raise BadPlan(f'{where} is no object: write {{"id": …, "title": …, "passes": false}}, not {shown(item)}')
        key = state_key(item, where)
        named = _id(item, name, found.form, index, where)
        if spellings.set_aside(str(item[key])):
            aside[named] = item
            told.notes[f'"{key}": {shown(item[key])} sets an entry aside: it is not worked on'] += 1
            continue
        made[index] = (_entry(text, stands[index], key, named, item, phase, where), item)
    entries = _with_words(made)
    if not entries:
        told.faults.append(f"it has no entry: {_called(found)} {'sets all its entries aside' if items else 'is empty'}")
    ids = [entry.id for entry in entries]
    if twice := [name for name, count in Counter([*ids, *aside]).items() if count > 1]:
        raise BadPlan(f"two entries have the same id: {twice[0]}")
    entries = _ordered(entries, [item for _, item in made.values()], aside, told.faults)
    rest = unread.around(whole, ids, told)
    for _, item in made.values():
        unread.look(item, set(ids), told)
    around = _canonical([found.path, _emptied(whole, found.path), aside])
    groups = found.groups or _groups(rest)
    seen = told.sentences(told.criteria)
    notes = told.sentences(told.notes)
    return Plan(text, found.form, entries, around, groups, seen, tuple(told.faults), notes)


def flipped(plan: Plan, passes: Mapping[int, bool]) -> Plan:
    """The plan in which these entries, by index, pass or do not; no other byte of its text changes."""
    parts: list[str] = []
    done = 0
    for index in sorted(passes):
        entry = plan.entries[index]
        parts += [plan.text[done : entry.at], entry.words[passes[index]]]
        done = entry.end
    made = read("".join([*parts, plan.text[done:]]).encode())
    kept = (replace(entry, words=before.words) for entry, before in zip(made.entries, plan.entries, strict=True))
    return replace(made, entries=tuple(kept))


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("an object has the same key twice")
    return made


# -- which list is the plan -------------------------------------------------------------------------


def _form(whole: object) -> _Found:
    if isinstance(whole, list):
        return _Found((), (("", whole),), FEATURES)
    if not isinstance(whole, dict):
        raise BadPlan("it is neither a list of entries nor an object with one")
    found = _lists(whole) or [one for key, value in whole.items() for one in _below(key, value)]
    if len(found) > 1:
        named = ", ".join(_path(one) for one in found)
        raise BadPlan(f"it has {len(found)} lists of entries, {named}: keep one, or give each a file of its own")
    if found:
        return found[0]
    known = f"call it {', '.join(LISTS)}"
    for key, value in whole.items():
        if spellings.plain(key) in map(spellings.plain, LISTS):
            raise BadPlan(f'"{key}" is {shown(value)}, and no list of entries')
        if isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
            raise BadPlan(f'"{key}" is no name of a list of entries that is known: {known}')
    keys = f"its keys are {', '.join(list(whole)[:12])}" if whole else "it is empty"
    raise BadPlan(f"it holds no list of entries ({keys}): {known}")


def _lists(whole: Mapping[str, object], base: tuple[str | None, ...] = ()) -> list[_Found]:
    """The lists of entries in an object: called so, or inside its phases."""
    known = present(whole, tuple(LISTS))
    lists = [key for key in known if isinstance(whole[key], list) or _by_id(whole[key])]
    if len(filled := [key for key in lists if whole[key]]) == 1:
        lists = filled
    if lists:
        return [_Found((*base, key), (("", whole[key]),), _listed(key)) for key in lists]
    found: list[_Found] = []
    for key in present(whole, spellings.GROUPS):
        groups = whole[key]
        if not isinstance(groups, list) or not all(isinstance(group, dict) for group in groups):
            continue
        names = {name for group in groups for name in present(group, tuple(LISTS)) if isinstance(group[name], list)}
        if len(names) > 1:
            raise BadPlan(
                f'the lists inside "{key}" are called {" and ".join(sorted(names))}: call all of them one name'
            )
        for name in names:
            called = [_group_name(group, f"{key} {n}") for n, group in enumerate(groups, 1)]
            lists_of = tuple((one, group.get(name, [])) for one, group in zip(called, groups, strict=True))
            made = tuple(
                Group(one, _gate(group.get("gate"), f"phase {one}")) for one, group in zip(called, groups, strict=True)
            )
            found.append(_Found((*base, key, EACH, name), lists_of, _listed(name), made))
    return found


def _group_name(group: Mapping[str, object], otherwise: str) -> str:
    key = next((key for key in ("name", "title", "id") if isinstance(group.get(key), str | int)), "")
    return _within(str(group[key]).strip() if key else otherwise, _MOST_NAME, otherwise, "name") or otherwise


def _below(key: str, value: object) -> list[_Found]:
    return _lists(value, (key,)) if isinstance(value, dict) else []


def _by_id(value: object) -> bool:
    return isinstance(value, dict) and bool(value) and all(isinstance(item, dict) for item in value.values())


def _items(entries: object) -> list[tuple[str, object]]:
    """Each entry, with the key that it stands under."""
    if isinstance(entries, dict):
        return list(entries.items())
    return [("", item) for item in entries] if isinstance(entries, list) else []


def _listed(key: str) -> str:
    return next(name for name in LISTS if spellings.plain(name) == spellings.plain(key))


def _path(found: _Found) -> str:
    return '"' + ".".join(step for step in found.path if step is not None) + '"'


def _called(found: _Found) -> str:
    return _path(found) if found.path else "the list"


# -- one entry --------------------------------------------------------------------------------------


def _id(item: Mapping[str, object], name: str, form: str, index: int, where: str) -> str:
    for key in present(item, spellings.ID):
        value = item[key]
        if not isinstance(value, str | int) or isinstance(value, bool) or not str(value).strip():
            raise BadPlan(f'{where}: its id ("{key}") is {shown(value)}; write a name or a number')
        return _within(str(value), _MOST_NAME, where, "id")
    return _within(name or f"{LISTS[form]}-{index + 1:03d}", _MOST_NAME, where, "id")


def _entry(text: str, stands: int, key: str, name: str, item: Mapping[str, object], phase: str, where: str) -> Entry:
    at, end = member(text, stands, key)
    titles = [value for one in present(item, spellings.TITLE) if isinstance(value := item[one], str) and value.strip()]
    if not titles:
        raise BadPlan(f'{where} has no title: write "title" or "description"')
    value = item[key]
    return Entry(
        id=name,
        title=titles[0],
        criteria=criteria_of(item, where),
        passes=bool(spellings.passes(value)) if isinstance(value, str) else bool(value),
        at=at,
        end=end,
        phase=phase or _within(_phase(item), _MOST_NAME, where, "phase"),
        gate=_gate(item.get("gate"), where),
        priority=next(
            (p for one in present(item, ("priority",)) if (p := spellings.priority(item[one])) is not None), -1
        ),
        about=_about(item, titles[0]),
        wording=_canonical({k: v for k, v in item.items() if k != key}),
    )


def _with_words(made: Mapping[int, tuple[Entry, Mapping[str, object]]]) -> tuple[Entry, ...]:
    """The entries with the words that a flip writes: for one that is to pass, the word that others of the file have
    that do; and for one that is not to, likewise.
    """
    texts = {index: item[state_key(item, "")] for index, (_, item) in made.items()}
    usual: dict[bool, str] = {}
    for passes in (False, True):
        known = Counter(str(texts[i]) for i, (e, _) in made.items() if isinstance(texts[i], str) and e.passes is passes)
        if known:
            usual[passes] = known.most_common(1)[0][0]
    unset = any(entry.priority == 0 for entry, _ in made.values())
    entries: list[Entry] = []
    for index, (entry, _) in made.items():
        value = texts[index]
        words = ("null" if value is None else "false", "true")
        if isinstance(value, str):
            own = json.dumps(value, ensure_ascii=False)
            if entry.passes:
                back = next((o for o, d in spellings.OPEN.items() if d == spellings.word(value)), "pending")
                words = (json.dumps(usual.get(False) or spellings.as_spelled(back, value), ensure_ascii=False), own)
            else:
                on = spellings.OPEN[spellings.word(value)]
                words = (own, json.dumps(usual.get(True) or spellings.as_spelled(on, value), ensure_ascii=False))
        entries.append(replace(entry, words=words, priority=entry.priority + unset if entry.priority >= 0 else 0))
    return tuple(entries)


def _within(text: str, most: int, where: str, what: str) -> str:
    if len(text) > most:
        raise BadPlan(f"{where}: its {what} has {len(text):,} characters, over {most:,}")
    return text


def _about(item: Mapping[str, object], title: str) -> str:
    values = (item[key] for key in present(item, spellings.ABOUT))
    return next((value.strip() for value in values if isinstance(value, str) and value.strip() and value != title), "")


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
            entries = tuple(str(one) for one in names_in(item.get("entries"), f"{where}: entries"))
            made.append(Group(name, _gate(item.get("gate"), where), entries))
    if len({group.name for group in made}) != len(made):
        raise BadPlan("two phases have the same name")
    return tuple(made)


# -- its order --------------------------------------------------------------------------------------


def _ordered(
    entries: tuple[Entry, ...], items: Sequence[Mapping[str, object]], aside: Mapping[str, object], faults: list[str]
) -> tuple[Entry, ...]:
    """The entries with what each waits for; a name of no entry is a fault."""
    known = {entry.id for entry in entries}
    waits: dict[str, list[str]] = {entry.id: [] for entry in entries}
    for entry, item in zip(entries, items, strict=True):
        for key in present(item, (*spellings.AFTER, *spellings.BEFORE)):
            for name in names_in(item[key], f'{entry.id}: "{key}"'):
                if name in aside:
                    faults.append(f'{entry.id}: "{key}" names {name}, which is set aside: take one of them out')
                elif name not in known:
                    hint = "write ids of entries, or call the key something else"
                    faults.append(f'{entry.id}: "{key}" names {name[:SHOWN]}, which is no entry: {hint}')
                first, then = (name, entry.id) if spellings.plain(key) not in spellings.BEFORE else (entry.id, name)
                waits.setdefault(then, []).append(first)
    return tuple(replace(entry, depends_on=tuple(dict.fromkeys(waits[entry.id]))) for entry in entries)


def _emptied(whole: object, path: Sequence[str | None]) -> object:
    """The file without its entries."""
    if not path:
        return None
    if isinstance(whole, list):
        return [_emptied(one, path[1:]) for one in whole]
    if not isinstance(whole, dict):
        return whole
    return {key: _emptied(value, path[1:]) if key == path[0] else value for key, value in whole.items()}


def _canonical(value: object) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False)
