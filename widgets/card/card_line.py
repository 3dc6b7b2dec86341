"""One line of a card, and how it is broken into rows. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len, chop_cells

from harness.domain.text.display_safe import exact_cells
from widgets.base.cells import clip

_CONTINUED = "    ↪ "
_KEPT = 3
"""A row that a break would leave filled to less than one part in so many is filled instead."""


@dataclass(frozen=True, slots=True)
class CardLine:
    """One line of a card: safe text, and its role (badge, head, label, run, text, dim, warn, add, remove, hunk, claim,
    rule). ``one_row``: words that the person knows, of which one row says enough.

    Every character of the text takes the same cells on every terminal, so that no end of a line leaves the screen.
    """

    text: str
    role: str = "text"
    one_row: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", exact_cells(self.text))


def wrap(line: CardLine, width: int) -> list[tuple[str, str]]:
    """(mark, text) for each row of one line: nothing is cut off, continued rows carry a mark that is not part of the
    text. Rows end between words, and a word that no row holds ends between the folders of a path where it can.
    """
    if line.one_row:
        return [("", clip(line.text, width))]
    rows = [("", _row(line.text, width))]
    rest = line.text[len(rows[0][1]) :]
    while rest:
        part = _row(rest, width - len(_CONTINUED))
        rows.append((_CONTINUED, part))
        rest = rest[len(part) :]
    return rows


def _row(text: str, width: int) -> str:
    """The beginning of the text that goes into one row; never empty while there is text."""
    if cell_len(text) <= width:
        return text
    whole = chop_cells(text, max(1, width))[0] or text[:1]
    if text[len(whole) : len(whole) + 1] == " ":
        return whole
    word = whole.rfind(" ") + 1
    known = word > len(whole) // _KEPT and bool(whole[:word].strip())
    if cell_len(text[word:].partition(" ")[0]) <= width - len(_CONTINUED):
        return whole[:word] if known else whole
    # the word fills rows by itself: it begins here, as far as a folder's name ends in this row
    folder = whole.rfind("/", word) + 1
    if folder > len(whole) // _KEPT:
        return whole[:folder]
    return whole[:word] if known else whole
