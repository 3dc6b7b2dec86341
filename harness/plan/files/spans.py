"""Where values stand in a JSON text that is known to be valid and to have no double keys. Pure."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

MARK = "\ufeff"
"""What some editors put before UTF-8; it stays where it is."""
EACH = None
"""In a path: every element of a list, or every value of an object."""
_WHITE = re.compile(r"[ \t\r\n]*")
_MOST_DIGITS = 1000


def whole_number(digits: str) -> int | float:
    """A number without an end to its digits is kept in the text; what it is to us is infinite."""
    return int(digits) if len(digits) <= _MOST_DIGITS else float(digits)


_DECODER = json.JSONDecoder(parse_int=whole_number)


def places(text: str, path: Sequence[str | None]) -> list[int]:
    """Where each value at this path begins, in the order of the text."""
    found = [_skip(text, len(text) - len(text.removeprefix(MARK)))]
    for step in path:
        found = [at for one in found for at in _below(text, one, step)]
    return found


def member(text: str, at: int, name: str) -> tuple[int, int]:
    """Where the value of this key of the object at ``at`` begins and ends."""
    begin = next(value for key, value in _members(text, at) if key == name)
    return begin, _after(text, begin)


def _below(text: str, at: int, step: str | None) -> Iterator[int]:
    if step is not None:
        yield from (value for key, value in _members(text, at) if key == step)
    elif text[at] == "{":
        yield from (value for _, value in _members(text, at))
    else:
        yield from _elements(text, at)


def _skip(text: str, at: int) -> int:
    match = _WHITE.match(text, at)
    return match.end() if match is not None else at


def _members(text: str, at: int) -> Iterator[tuple[str, int]]:
    """(key, where its value begins) of the object that begins at ``at``."""
    if text[at] != "{":
        return
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
