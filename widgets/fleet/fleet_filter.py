"""Which sessions a typed filter means: ``state:waiting repo:shop -is:ended "two words"``. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from harness.domain.text.formatting import NANO, parse_ts
from harness.views.session_views import GROUPS, SessionRow
from widgets.base.cells import MARKS

Test: TypeAlias = Callable[[SessionRow], bool]
_LIMIT = re.compile(r"([<>])\$?(\d{1,9}(?:\.\d{1,9})?)([smhd]?)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class FilterError(ValueError):
    """A filter cannot be understood; the message says which part of it and what would do."""


@dataclass(frozen=True, slots=True)
class Term:
    """One condition: ``key`` has one of ``values``; without a key, one of them stands anywhere in the row."""

    key: str
    values: tuple[str, ...]
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Filter:
    """All of these conditions hold."""

    terms: tuple[Term, ...] = ()

    def test(self, now: float) -> Test:
        """Whether a session is meant; ``now`` is in seconds since the epoch."""
        tests = [(_test(term, now), term.negated) for term in self.terms]
        return lambda row: all(holds(row) != negated for holds, negated in tests)


def repository(row: SessionRow) -> str:
    """The short name of its repository; raw text."""
    return row.repo.rstrip("/").rpartition("/")[2]


_TEXTS: Mapping[str, Callable[[SessionRow], str]] = {
    "repo": lambda row: row.repo,
    "name": lambda row: row.name,
    "branch": lambda row: row.branch,
    "model": lambda row: row.model,
    "goal": lambda row: row.goal,
}
_WORDS: Mapping[str, tuple[str, ...]] = {
    "state": tuple(MARKS),
    "group": GROUPS,
    "is": ("verified", "unverified", "ended", "asking"),
}
_FORMS = {"spent": "spent:>1.50", "age": "age:>2h"}
KEYS = (*_WORDS, *_TEXTS, *_FORMS)


def parse(text: str) -> Filter:
    """What was typed, as conditions. A quote that is not closed reaches to the end. Raises FilterError."""
    return Filter(tuple(_term(word) for word in _words(text)))


def _words(text: str) -> list[list[tuple[str, bool]]]:
    """The words of a filter, each as its letters with whether they were quoted."""
    words: list[list[tuple[str, bool]]] = [[]]
    inside = False
    for letter in text:
        if letter == '"':
            inside = not inside
        elif letter.isspace() and not inside:
            words.append([])
        else:
            words[-1].append((letter, inside))
    return [word for word in words if word]


def _term(word: list[tuple[str, bool]]) -> Term:
    negated = len(word) > 1 and word[0] == ("-", False)
    word = word[negated:]
    at = next((i for i, letter in enumerate(word) if letter == (":", False)), -1)
    key = "".join(letter for letter, _ in word[:at]).casefold() if at > 0 else ""
    values = _values(word[at + 1 :] if key else word)
    if key and key not in KEYS:
        whole = "".join(letter for letter, _ in word)
        raise FilterError(f'{key}: is nothing to filter by; known: {", ".join(KEYS)}; as a text: "{whole}"')
    if not values:
        raise FilterError(f"{key}: needs a value, such as {_example(key)}" if key else "a comma stands alone")
    for value in values:
        _check(key, value)
    return Term(key, values, negated)


def _values(word: list[tuple[str, bool]]) -> tuple[str, ...]:
    """What stands between commas that are not quoted."""
    values = [""]
    for letter, inside in word:
        if letter == "," and not inside:
            values.append("")
        else:
            values[-1] += letter
    return tuple(value for value in values if value)


def _example(key: str) -> str:
    if key in _FORMS:
        return _FORMS[key]
    return f"{key}:{_WORDS[key][0]}" if key in _WORDS else f"{key}:shop"


def _check(key: str, value: str) -> None:
    if key in _WORDS and not _meant(key, value):
        raise FilterError(f"{key}:{value} is unknown; {key} can be: {', '.join(_WORDS[key])}")
    if key in _FORMS:
        found = _LIMIT.fullmatch(value)
        if found is None or bool(found[3]) != (key == "age"):
            raise FilterError(f"{key}:{value} is no limit; write it as {_FORMS[key]}, or with <")


def _meant(key: str, value: str) -> set[str]:
    """The words that begin so, so that a filter works while it is being typed; a whole word means itself alone."""
    value = value.casefold()
    words = set(_WORDS[key])
    return {value} & words or {word for word in words if any(word.startswith(value, at) for at in _begins(word))}


def _begins(words: str) -> list[int]:
    return [0, *(at + 1 for at, letter in enumerate(words) if letter == " ")]


def _test(term: Term, now: float) -> Test:
    key = term.key
    if key in _FORMS:
        limits = [_limit(key, value, now) for value in term.values]
        return lambda row: any(within(row) for within in limits)
    if key in _WORDS:
        meant = set().union(*(_meant(key, value) for value in term.values))
        return lambda row: not meant.isdisjoint(_words_of(key, row))
    needles = [value.casefold() for value in term.values]
    texts = _TEXTS.get(key, _anything)
    return lambda row: any(needle in text for text in (texts(row).casefold(),) for needle in needles)


def _words_of(key: str, row: SessionRow) -> set[str]:
    if key == "state":
        return {row.state}
    if key == "group":
        return {row.group}
    made = {"ended"} if row.ended else set()
    made |= {"asking"} if row.approvals else set()
    if row.state == "done":
        made.add("verified" if row.verified else "unverified")
    return made


def _anything(row: SessionRow) -> str:
    return "\n".join((row.name, row.repo, row.branch, row.detail, row.goal, row.sid))


def _limit(key: str, value: str, now: float) -> Test:
    """Whether what is measured lies on the side of the limit that was typed."""
    found = _LIMIT.fullmatch(value)
    if found is None:
        raise FilterError(f"{key}:{value} is no limit")
    above = found[1] == ">"
    limit = float(found[2]) * _SECONDS.get(found[3], 1)

    def within(row: SessionRow) -> bool:
        born = parse_ts(row.created) if key == "age" else None
        if key == "age" and born is None:
            return False
        measured = row.spent_nano / NANO if born is None else now - born
        return measured > limit if above else measured < limit

    return within
