"""Reading the fields of a dict that came from a log or a socket, each with the type it must have. Standard library
only.
"""

from __future__ import annotations

from collections.abc import Mapping

Wire = dict[str, object]
"""The form of a value that is hashed, recorded and sent."""


class BadField(ValueError):
    """A field is missing or of another form; the message is its quoted name."""

    def __init__(self, name: str) -> None:
        super().__init__(repr(name))


def text(wire: Mapping[str, object], name: str, default: str | None = None) -> str:
    """A string; without ``default`` it must be there. Raises BadField."""
    value = wire.get(name, default)
    if not isinstance(value, str):
        raise BadField(name)
    return value


def texts(wire: Mapping[str, object], name: str) -> tuple[str, ...]:
    """A list of strings, empty when it is missing. Raises BadField."""
    value = wire.get(name, [])
    if not isinstance(value, (list, tuple)) or not all(isinstance(part, str) for part in value):
        raise BadField(name)
    return tuple(value)


def items(wire: Mapping[str, object], name: str, size: int) -> list[tuple[str, ...]]:
    """A list of lists of ``size`` strings each, empty when it is missing. Raises BadField."""
    value = wire.get(name, [])
    if not isinstance(value, (list, tuple)):
        raise BadField(name)
    rows = [tuple(row) for row in value if isinstance(row, (list, tuple)) and len(row) == size]
    if len(rows) != len(value) or not all(isinstance(part, str) for row in rows for part in row):
        raise BadField(name)
    return rows


def number(wire: Mapping[str, object], name: str, default: int) -> int:
    """A whole number. Raises BadField."""
    value = wire.get(name, default)
    if not isinstance(value, int) or isinstance(value, bool):
        raise BadField(name)
    return value


def flag(wire: Mapping[str, object], name: str, default: bool) -> bool:
    """True or false. Raises BadField."""
    value = wire.get(name, default)
    if not isinstance(value, bool):
        raise BadField(name)
    return value


def table(wire: Mapping[str, object], name: str) -> dict[str, object]:
    """An object, empty when it is missing. Raises BadField."""
    value = wire.get(name, {})
    if not isinstance(value, dict):
        raise BadField(name)
    return value


def words(wire: Mapping[str, object], name: str) -> dict[str, str]:
    """An object whose values are strings, empty when it is missing. Raises BadField."""
    value = {key: item for key, item in table(wire, name).items() if isinstance(item, str)}
    if len(value) != len(table(wire, name)):
        raise BadField(name)
    return value
