"""Where things stand on a terminal whose table of widths is not ours.

Room is kept for the widest reading of every character, and what may be drawn narrower is put where it belongs: blanks
first, then the characters, then the cursor behind the room that was kept.

Read from Rich 15.0.0 and Textual 8.2.8, which measure through `rich.cells.get_character_cell_size`.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache

import rich.cells

from harness.domain.text.cell_width import agreed, cells, clusters, widest

_MEASURE = "get_character_cell_size"
_DRAWN = re.compile(
    "(\x1b[\\]P_^X][^\x07\x1b]*(?:\x07|\x1b\\\\))|[^\x00-\u02ff\u0370-\u0482\u048a-\u052f\u2010-\u22ff\u2500-\u25fc]+"
)
"""A string that the terminal reads for itself (a title, the clipboard), or characters that may need their place."""


def install() -> None:
    """Have the screen's library measure by the widest reading of each character."""
    theirs = rich.cells.get_character_cell_size
    if theirs is _size:
        return
    for module in list(sys.modules.values()):
        if vars(module).get(_MEASURE) is theirs:
            vars(module)[_MEASURE] = _size
    rich.cells.cached_cell_len.cache_clear()


@lru_cache(maxsize=4096)
def _size(character: str, unicode_version: str = "auto") -> int:
    return widest(character)


def placed(data: str) -> str:
    """What is written to a terminal, with every character where the screen believes it."""
    return data if data.isascii() else _DRAWN.sub(_place, data)


def _place(match: re.Match[str]) -> str:
    if match[1]:
        return match[0]
    return "".join(_kept(piece) for piece in clusters(match[0]))


@lru_cache(maxsize=4096)
def _kept(piece: str) -> str:
    """One piece in the room that is kept for it; as it is where every terminal gives it one cell."""
    room = cells(piece)
    if room == 0 or (room == 1 and all(map(agreed, piece))):
        return piece
    blanks = "" if all(map(agreed, piece)) else " " * room + "\x1b8"
    return f"\x1b7{blanks}{piece}\x1b8\x1b[{room}C"
