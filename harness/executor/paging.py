"""A text of any size in pieces that reach the model whole: by number, or by what stands in them. Pure, standard library
only.

A piece is a line, or `WIDTH` characters of a longer one, so that every part of any text has a number of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from harness.domain.text.formatting import counted

WIDTH = 1900
"""Characters of one piece: also the widest ones fit into one answer."""
_AROUND = 100  # characters shown before a match in a longer piece
_EXCERPT = 400


BAD_PATTERN = (re.error, RecursionError, OverflowError)
"""What a pattern that cannot be used is answered with: also one that is nested too deep, or counts too far."""


class NoSuchPage(ValueError):
    """Nothing to show; the message says why, for the model."""


def page(text: str, first: int, most: int, room: int) -> str:
    """At most ``most`` pieces from number ``first`` (from 1) on within ``room`` bytes, at least one; the last line says
    which they are of how many. Raises NoSuchPage beyond the end.
    """
    shown: list[str] = []
    total = 0
    last = 0
    size = 0
    full = False
    for number, start, end in _pieces(text):
        total = number
        if number < first or full:
            continue
        line = f"{number:6}\t{text[start:end]}"
        size += len(line.encode("utf-8", "replace")) + 1
        full = bool(shown) and (size > room or len(shown) == most)
        if not full:
            shown.append(line)
            last = number
    if not total:
        return "(the output is empty)"
    if not shown:
        raise NoSuchPage(f"the output has only {counted(total, 'line')}; offset {first} is beyond its end")
    if first > 1 or last < total:
        more = f"; go on with offset {last + 1}" if last < total else ""
        shown.append(f"(lines {first} to {last} of {total}{more})")
    return "\n".join(shown)


def grep(text: str, pattern: str, first: int, most: int, room: int) -> str:
    """The pieces from number ``first`` on in which a match of ``pattern`` begins, an excerpt of each, within ``room``
    bytes; the last line says how many more there are. Raises NoSuchPage without a match or with a bad pattern.
    """
    try:
        expression = re.compile(pattern)
    except BAD_PATTERN as exc:
        raise NoSuchPage(f"the pattern is not a valid regular expression: {exc}") from exc
    shown: list[str] = []
    size = 0
    count = 0
    total = 0
    following = 0
    for number, at, start, end in _matches(text, expression):
        total += 1
        if number < first:
            continue
        count += 1
        begin = max(start, at - _AROUND)
        line = f"{number:6}\t{text[begin : min(end, begin + _EXCERPT)]}"
        size += len(line.encode("utf-8", "replace")) + 1
        if following or (shown and (size > room or len(shown) == most)):
            following = following or number
        else:
            shown.append(line)
    if not shown:
        raise NoSuchPage(
            f"no line of the output matches from line {first} on; {total} before it do"
            if total
            else "no line of the output matches"
        )
    if following:
        shown.append(f"({count - len(shown)} more lines match; go on with offset {following})")
    return "\n".join(shown)


def _lines(text: str) -> Iterator[tuple[int, int]]:
    """Begin and end of each line, without its line feed."""
    start = 0
    while start < len(text):
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield start, end
        start = end + 1


def _pieces(text: str) -> Iterator[tuple[int, int, int]]:
    """(number, begin, end) of each piece."""
    number = 0
    for start, end in _lines(text):
        for at in range(start, max(end, start + 1), WIDTH):
            number += 1
            yield number, at, min(end, at + WIDTH)


def _matches(text: str, expression: re.Pattern[str]) -> Iterator[tuple[int, int, int, int]]:
    """(number of the piece, where the first match in it begins, begin and end of what may be shown of its line)."""
    before = 0
    for start, end in _lines(text):
        line = text[start:end]
        at = 0
        while (found := expression.search(line, at)) is not None:
            piece = found.start() // WIDTH
            yield before + piece + 1, start + found.start(), start + max(0, piece * WIDTH - _AROUND), end
            at = (piece + 1) * WIDTH
            if at >= len(line):
                break
        before += max(1, -(-len(line) // WIDTH))
