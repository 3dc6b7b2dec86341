"""What the values of an entry's keys say: its state, its criteria, the ids that it names. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from harness.plan.files import criteria, spellings
from harness.plan.files.spellings import present

SHOWN = 60
"""Characters of a value in a message."""
_SENTENCE = ("text", "description", "criterion", "title", "name", "step", "steps", "given", *spellings.CRITERIA)
_COMMAND = ("run", "cmd", *spellings.COMMANDS)


class BadPlan(ValueError):
    """A file is no plan; the message says where and why."""


def state_key(item: Mapping[str, object], where: str) -> str:
    """The key that says whether it passes. Raises BadPlan."""
    for key in present(item, spellings.DECIDED):
        if isinstance(item[key], bool) or item[key] is None:
            return key
    for key in present(item, spellings.STATUS):
        value = item[key]
        if isinstance(value, str) and (spellings.passes(value) is not None or spellings.set_aside(value)):
            return key
    for key in present(item, (*spellings.DECIDED, *spellings.STATUS)):
        words = (
            "write pending, in_progress or done" if spellings.plain(key) in spellings.STATUS else "write true or false"
        )
        raise BadPlan(f'{where}: "{key}" is {shown(item[key])}; {words}')
    like = next((f' ("{key}" is not read as one)' for key in item if spellings.STATE_LIKE.search(key)), "")
    raise BadPlan(f'{where} does not say whether it passes{like}: write "passes": false')


def criteria_of(item: Mapping[str, object], where: str) -> tuple[str, ...]:
    """Every sentence that decides an entry; a command becomes the sentence that asks for it."""
    found: list[str] = []
    for key in present(item, spellings.CRITERIA):
        found += _texts(item[key], f'{where}: "{key}"')
    for key in present(item, spellings.COMMANDS):
        found += map(criteria.run, _texts(item[key], f'{where}: "{key}"'))
    for key in present(item, spellings.EITHER):
        found += map(_sentence, _texts(item[key], f'{where}: "{key}"'))
    ways = [_sentence(text) for key in present(item, spellings.WAYS) for text in _texts(item[key], f'{where}: "{key}"')]
    alone = not present(item, spellings.CRITERIA)
    found += [text for text in ways if alone or text.startswith("Run `")]
    return tuple(dict.fromkeys(found))


def _sentence(text: str) -> str:
    return criteria.run(text) if criteria.is_command(text) else text


def _texts(value: object, where: str) -> list[str]:
    """The texts in a value: one, a list of them, or objects that have one each. Raises BadPlan."""
    if value is None or isinstance(value, bool):
        return []
    if isinstance(value, str):
        return [value.strip()] if value.strip() else []
    if isinstance(value, list):
        return [text for one in value for text in ([one] if one == "" else _texts(one, where))]
    if isinstance(value, dict):
        sentences = [text for key in present(value, _SENTENCE) for text in _texts(value[key], where)]
        commands = [text for key in present(value, _COMMAND) for text in _texts(value[key], where)]
        if sentences or commands:
            return [*(sentences if not commands else []), *map(criteria.run, commands)]
        raise BadPlan(f"{where} holds {shown(value)}; write texts")
    raise BadPlan(f"{where} is {shown(value)}; write a list of texts")


def names_in(value: object, where: str) -> list[str]:
    """The ids in a value: one, several with commas, or a list of them. Raises BadPlan."""
    if value is None or isinstance(value, bool):
        return []
    if isinstance(value, str):
        return [
            name for part in value.split(",") if (name := part.strip()) and name.lower() not in ("none", "-", "n/a")
        ]
    if isinstance(value, int):
        return [str(value)]
    if isinstance(value, dict) and (keys := present(value, spellings.ID)):
        return names_in(value[keys[0]], where)
    if isinstance(value, list):
        return [name for one in value for name in ([one] if isinstance(one, str) and one else names_in(one, where))]
    raise BadPlan(f"{where} is {shown(value)}; write a list of ids")


def flat(value: object) -> Iterable[str]:
    if isinstance(value, list | tuple):
        for one in value:
            yield from flat(one)
    elif isinstance(value, dict):
        for key, one in value.items():
            yield key
            yield from flat(one)
    elif isinstance(value, str) or (isinstance(value, int) and not isinstance(value, bool)):
        yield str(value)


def shown(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
