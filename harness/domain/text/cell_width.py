"""How many terminal cells a character takes, by the readings that terminals in use have of it. Pure.

Programs and terminals each carry a table of widths, and the tables differ: for marks that take room of their own, for
skin tones, for the vowels of decomposed Hangul. Where they differ, a line that fits by one reading runs off the screen
by another. So `widest` is what room is kept for, and `agreed` says whether there is more than one reading.

Sources: Unicode UAX #11 (East Asian Width) and general categories; the tables of glibc, of the library that draws our
screen and of tmux, which `tests/unit/test_cell_width.py` compares with this one.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_MARKS = ("Mn", "Me", "Mc")
_JOINS_UP = re.compile("[\u1160-\u11ff\ud7b0-\ud7ff\uff9e\uff9f]")
"""Vowels and final consonants of Hangul, and half-width voice marks: part of the letter before them, or one cell."""
_PAIRS = re.compile("[\U0001f1e6-\U0001f1ff]")
"""Two of them are one flag of two cells; how wide a single one is was never said."""
_WIDENED = re.compile(
    "[\u2630-\u2637\u268a-\u268f\u3248-\u324f\u4dc0-\u4dff\U0001d300-\U0001d356\U0001d360-\U0001d376]"
)
"""One cell before Unicode 16 and two since, or the other way round by the kind of table."""
_SIMPLE = re.compile("[\x20-\x7e\xa0-\xac\xae-\u02ff\u0370-\u0377\u0384-\u0482\u048a-\u052f\u2500-\u25fc]*")
"""Letters of Latin, Greek and Cyrillic, and what boxes are drawn with: one cell by every table."""


def readings(ch: str) -> tuple[int, int]:
    """The fewest and the most cells that terminals give to one printable character; (0, 0) for a control."""
    return (1, 1) if _SIMPLE.fullmatch(ch) else _readings(ch)


@lru_cache(maxsize=4096)
def _readings(ch: str) -> tuple[int, int]:
    category = unicodedata.category(ch)
    if category in ("Cc", "Cf", "Cs", "Zl", "Zp"):
        return 0, 0
    wide = 2 if unicodedata.east_asian_width(ch) in "WF" else 1
    if category in _MARKS:
        return 0, wide if wide == 2 or category == "Mc" else 0
    if _JOINS_UP.match(ch) or (category == "Sk" and wide == 2):
        return 0, wide
    if _PAIRS.match(ch) or _WIDENED.match(ch):
        return 1, 2
    return wide, wide


def widest(ch: str) -> int:
    """The most cells that a terminal gives to a character: the room that is kept for it."""
    return readings(ch)[1]


def agreed(ch: str) -> bool:
    """Whether every terminal gives the same number of cells to a character."""
    fewest, most = readings(ch)
    return fewest == most


def cells(text: str) -> int:
    """The most cells that a text takes on one line."""
    return len(text) if _SIMPLE.fullmatch(text) else sum(map(widest, text))


def clusters(text: str) -> list[str]:
    """The text in pieces that a terminal draws as one: a character with the marks behind it."""
    found: list[str] = []
    for ch in text:
        if found and readings(ch)[0] == 0:
            found[-1] += ch
        else:
            found.append(ch)
    return found
