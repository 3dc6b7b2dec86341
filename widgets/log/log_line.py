"""One record of a log as one strip: time, kind in its tone, words; the searched text marked.

Pure but for the local time zone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rich.style import Style
from textual.strip import Strip

from harness.domain.text.display_safe import to_display
from harness.domain.text.formatting import local, parse_ts
from harness.events import types as t
from harness.reports.describe import describe
from widgets.base.cells import Line, fit
from widgets.log.milestones import MILESTONES

_KIND = 10
_MARK = 2


@dataclass(frozen=True, slots=True)
class LineLook:
    """How lines look now: their width, the styles by role name, the base style, and whether the cursor is on this
    one.
    """

    width: int
    compact: bool
    style: Callable[[str], Style]
    base: Style
    marked: bool = False


def time_width(width: int, compact: bool) -> int:
    """Cells of the time column: hours and minutes, seconds when there is room, the day when there is more."""
    if compact:
        return 5 if width < 60 else 8
    return 14 if width >= 100 else 8


def heading(width: int) -> str:
    """The column titles of a log that is not compact."""
    return fit("time", time_width(width, False) + 1 + _MARK) + fit("kind", _KIND + 1) + "what happened"


def draw(record: t.Record | None, seq: int, look: LineLook, needle: str = "") -> Strip:
    """The strip of one record; None = it cannot be read. ``needle`` is a text that the record is known to hold."""
    if record is None:
        when = ""
        kind = "damaged"
        text = f"record {seq} cannot be read; watchfloor verify says where"
        tone = "bad"
    else:
        said = describe(record)
        when = record.ts
        kind = said.kind
        tone = said.tone
        text = to_display(said.summary[: max(40, look.width * 3)])
    cursor = look.style("cursor") if look.marked else Style.null()
    base = look.base + cursor
    # Under the cursor the colours of the cursor win; weight and slant of the role stay.
    over = Style(color=base.color, bgcolor=base.bgcolor) if look.marked else Style.null()
    columns = time_width(look.width, look.compact)
    line = Line(look.width)
    line.left(fit(_clock(when, columns), columns) + " ", look.style("time") + over)
    if not look.compact:
        line.left(fit(MILESTONES[kind][0] if kind in MILESTONES else "", _MARK), look.style(tone) + over)
    line.left(fit(to_display(kind[:40]), _KIND) + " ", look.style(tone) + over)
    words = look.style("dim" if tone == "dim" else "text") + over
    if needle:
        _marked(line, text, to_display(needle), words, look.style("hit"))
    else:
        line.left(text, words)
    return line.strip(base)


def _marked(line: Line, text: str, needle: str, words: Style, hit: Style) -> None:
    folded = text.casefold()
    wanted = needle.casefold()
    at = 0
    # Where folding changes the length the places would not fit, so the line says only that it holds the text.
    found = folded.find(wanted) if len(folded) == len(text) and len(wanted) == len(needle) else -1
    if found < 0:
        line.right(" hit inside", hit)
    while found >= 0:
        line.left(text[at:found], words).left(text[found : found + len(needle)], hit)
        at = found + len(needle)
        found = folded.find(wanted, at)
    line.left(text[at:], words)


def _clock(ts: str, width: int) -> str:
    if parse_ts(ts) is None:
        return ""
    if width < 8:
        return local(ts, "%H:%M")
    return local(ts, "%H:%M:%S" if width < 14 else "%m-%d %H:%M:%S")
