"""Text in TOML: its tables, and the line of each key in it. Standard library only."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

Place = tuple[str | int, ...]
"""The way to a value: names of keys, and numbers of the tables of an array."""
_TOKEN = re.compile(
    r'''"""(?:\\.|[^\\])*?"{3,5}|'{3}.*?'{3,5}|"(?:\\.|[^"\\\n])*"|'[^'\n]*'|#[^\n]*|[\[\]{}\n]''', re.DOTALL
)
"""A text, a comment, a bracket or the end of a line."""
_DEEPEST = 8
"""Names of a key that are told apart; no setting has more."""


class Unusable(Exception):
    """What the user wrote cannot be used; the message names file, line and key."""

    def __init__(self, file: str | Path, line: int, key: str, why: str) -> None:
        super().__init__(f"{file}, line {line}: {key}: {why}" if key else f"{file}, line {line}: {why}")
        self.file = str(file)
        self.line = line
        self.key = key
        self.why = why


def tables(text: str, file: str | Path, error: type[Unusable]) -> dict[str, object]:
    """The tables of a file. Raises ``error`` for text that is no TOML, or is nested too deep to be read."""
    import tomllib  # only where there is a file: the floor's first paint does not wait for the parser

    try:
        return tomllib.loads(text)
    except RecursionError as exc:
        raise error(file, 1, "", "nested deeper than any file of this kind is") from exc
    except ValueError as exc:
        found = re.search(r"line (\d+)", str(exc))
        raise error(file, int(found[1]) if found else text.count("\n") + 1, "", str(exc)) from exc


def lines(text: str) -> dict[Place, int]:
    """The line in which each section and each key of a valid file begins."""
    found: dict[Place, int] = {(): 1}
    section: Place = ()
    arrays: dict[Place, int] = {}
    for line, header, names, is_array in _statements(text):
        place = () if header else section
        for name in names:
            place += (name,)
            if header and is_array and len(names) == sum(isinstance(key, str) for key in place):
                arrays[place] = arrays.get(place, -1) + 1
            if header and place in arrays:
                place += (arrays[place],)
        section = place if header else section
        for length in range(1, len(place) + 1):
            found.setdefault(place[:length], line)
    return found


def _statements(text: str) -> Iterator[tuple[int, bool, list[str], bool]]:
    """Line, whether it is a header, the names in it, and whether they end in an array: each statement of a file can be
    parsed by itself. Linear in the text, which somebody may have written to hold up its reader.
    """
    import tomllib

    text = text.replace("\r\n", "\n") + "\n"
    start = 0
    depth = 0
    line = 1
    for token in _TOKEN.finditer(text):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(token[0], 0)
        if token[0] != "\n" or depth:
            continue
        statement = text[start : token.start()]
        value: object = tomllib.loads(statement)
        names: list[str] = []
        while isinstance(value, dict) and len(value) == 1 and len(names) < _DEEPEST:
            ((name, value),) = value.items()
            names.append(name)
        if names:
            yield line, statement.lstrip().startswith("["), names, isinstance(value, list)
        line += statement.count("\n") + 1
        start = token.end()
