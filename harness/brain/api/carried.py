"""What of the JSON of a reply the log and later requests can carry; pure."""

from __future__ import annotations

from collections.abc import Iterable

MAX_DEPTH = 200
"""Levels of lists and objects in each other: whoever reads the log has a stack for more."""


def whole(value: object) -> object:
    """The same structure with halves of surrogate pairs replaced: they are no text, and no log or request could carry
    them.
    """
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {whole(k): whole(v) for k, v in value.items()}
    return [whole(v) for v in value] if isinstance(value, list) else value


def too_deep(value: object) -> bool:
    """True when it has more than `MAX_DEPTH` levels; asks no stack of its own for them."""
    level = [value]
    for _ in range(MAX_DEPTH):
        if not (level := [inner for outer in level for inner in _inside(outer) if isinstance(inner, (dict, list))]):
            return False
    return True


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()
