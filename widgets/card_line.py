"""One line of a card, and how it is broken into rows. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from rich.cells import cell_len, chop_cells

_CONTINUED = "    ↪ "


@dataclass(frozen=True, slots=True)
class CardLine:
    """One line of a card: safe text, and its role (badge, head, label, run, text, dim, warn, add, remove, hunk, claim,
    rule).
    """

    text: str
    role: str = "text"


def wrap(line: CardLine, width: int) -> list[tuple[str, str]]:
    """(mark, text) for each row of one line: nothing is cut off, continued rows carry a mark that is not part of the
    text. Rows end between words where there are any.
    """
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
    words = whole.rfind(" ") + 1
    # a row of which a word would leave most empty is filled instead
    return whole[:words] if words > len(whole) // 3 and whole[:words].strip() else whole
