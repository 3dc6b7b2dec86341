"""A row of a transcript as lines of a given width: what is cut, what wraps, and in which colour role. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rich.cells import cell_len

from harness.domain.text.display_safe import to_display
from harness.domain.text.formatting import clock, local, parse_ts
from harness.reports import verdicts
from harness.reports.transcript_row import Kind, Row, Stage
from widgets.base.cells import ELLIPSIS, clip, wrap
from widgets.diff.patch import code_display
from widgets.log.milestones import MILESTONES

Run: TypeAlias = tuple[str, str]
"""(safe text, colour role)"""

_MARKS = {
    Stage.DOUBT: ("?", "attention"),
    Stage.ASKED: ("◆", "call"),
    Stage.RUNNING: ("▶", "meter"),
    Stage.PROPOSED: ("○", "quiet"),
    Stage.FAILED: ("✗", "bad"),
    Stage.STOPPED: ("■", "quiet"),
    Stage.OK: ("✓", "good"),
}
_RESULTS = {Stage.DOUBT: "attention", Stage.ASKED: "call", Stage.FAILED: "bad"}
_TONES = {"info": "quiet", "good": "good", "warn": "attention", "bad": "bad", "dim": "quiet"}
_BITS = {"add": ("+", "good"), "remove": ("-", "bad"), "quiet": (" ", "quiet")}
_CALL_LINES = 2
_EVENT_LINES = 3
_MEASURE = 116
"""Cells of a line of prose at most: longer ones are hard to read."""
_SHORTEST_MS = 100
_NARROWEST = 20


@dataclass(frozen=True, slots=True)
class TextLine:
    """One line: runs from the left, runs at the right edge."""

    left: tuple[Run, ...] = ()
    right: tuple[Run, ...] = ()


def took(ms: int) -> str:
    """How long a call took, when that is worth a word: ``0.4s``, ``41s``, ``3:10``."""
    if ms < _SHORTEST_MS:
        return ""
    if ms < 10_000:
        return f"{ms / 1000:.1f}s"
    return f"{ms // 1000}s" if ms < 60_000 else clock(ms / 1000)


def lines(row: Row, width: int, now: float, output: Sequence[str] = (), *, roomy: bool = False) -> list[TextLine]:
    """The lines of a row; ``output`` are the newest lines of a call that runs (raw), ``now`` moves its clock.

    ``roomy``: with the time of day, and a gap above what is said.
    """
    stamp = _time(row.ts) if roomy else ""
    room = max(4, width - len(stamp))
    if row.kind is Kind.CALL:
        made = _call(row, room, now, output)
    elif row.kind is Kind.EVENT:
        made = _event(row, room)
    else:
        made = _prose(row, room)
    if not stamp:
        return made
    made = [TextLine(((stamp if i == 0 else " " * len(stamp), "quiet"), *m.left), m.right) for i, m in enumerate(made)]
    return [TextLine(), *made] if row.kind in (Kind.PROSE, Kind.TOLD) else made


def _prose(row: Row, width: int) -> list[TextLine]:
    label = f"{to_display(row.label, limit=20)}: " if row.label else ""
    text = row.what + (f" {row.result}" if row.result else "")
    made: list[TextLine] = []
    gap = False
    for part in text.split("\n"):
        if not part.strip():
            gap = bool(made)
            continue
        if gap:
            made.append(TextLine())
            gap = False
        first = label if not made else ""
        shown = wrap(first + code_display(part), min(width, _MEASURE))
        if first and shown[0].startswith(first):
            made.append(TextLine(((first, "heading"), (shown.pop(0)[len(first) :], "text"))))
        made += [TextLine(((piece, "text"),)) for piece in shown]
    return made or [TextLine(((label, "heading"),))]


def _event(row: Row, width: int) -> list[TextLine]:
    mark, role = _MARKS.get(row.stage, ("·", _TONES[row.tone]))
    edge = role
    if row.stage is Stage.NONE and row.label in MILESTONES:
        mark, edge = MILESTONES[row.label]
        edge = role if row.tone in ("good", "warn", "bad") else edge
    text = to_display(row.what) + (f" · {to_display(row.result)}" if row.result else "")
    label = to_display(row.label, limit=20)
    shown = _cut(text if text.startswith(label) else f"{label}: {text}", width - 2, _EVENT_LINES)
    return [TextLine(((f"{mark} " if i == 0 else "  ", edge), (part, role))) for i, part in enumerate(shown)]


def _call(row: Row, width: int, now: float, output: Sequence[str]) -> list[TextLine]:
    mark, role = _MARKS.get(row.stage, ("·", "quiet"))
    running = row.stage is Stage.RUNNING
    spent = clock(now - (parse_ts(row.since) or now)) if running and row.since else took(row.ms)
    if width < _NARROWEST:
        spent = ""
    beside = f" {spent}" if spent else ""
    tone = "meter" if running else "quiet"
    right: tuple[Run, ...] = ((beside, tone),) if beside else ()
    room = max(4, width - 2 - len(beside))
    label = f"{to_display(row.label, limit=20)} " if row.label else ""
    change = _change(row)
    counts = sum(cell_len(text) for text, _ in change)
    result = to_display(row.result)
    shown = _RESULTS.get(row.stage, "quiet")
    what = _cut(label + to_display(row.what), room, _CALL_LINES)
    # What went well steps back behind what is said, what runs and what went wrong.
    loud = "quiet" if row.stage is Stage.OK else "text"
    made = [TextLine(((f"{mark} ", role), *_labelled(what[0], label, loud)), right)]
    made += [TextLine((("  " + part, loud),)) for part in what[1:]]
    free = (room if len(what) == 1 else width - 2) - cell_len(what[-1])
    if counts and counts <= free:
        made[-1] = TextLine((*made[-1].left, *change), made[-1].right)
        free -= counts
    if result and cell_len(result) + 2 <= free:
        made[-1] = TextLine((*made[-1].left, ("  " + result, shown)), made[-1].right)
    elif result:
        made += [TextLine((("  " + part, shown),)) for part in _cut(result, width - 2, _CALL_LINES)]
    below = [_BITS[bit.role] + (bit.text,) for bit in row.more]
    if running and output:
        below = [(" ", "quiet", verdicts.plain(text)) for text in output]
    made += [TextLine((("   " + clip(f"{sign} {code_display(text)}", width - 3), tone),)) for sign, tone, text in below]
    return made


def _labelled(text: str, label: str, role: str) -> tuple[Run, ...]:
    if label and text.startswith(label):
        return ((label, "name"), (text[len(label) :], role))
    return ((text, role),)


def _change(row: Row) -> tuple[Run, ...]:
    """Lines added and removed; nothing when there is nothing to count."""
    added = ((f"+{row.added}", "good"),) if row.added else ()
    removed = ((f"-{row.removed}", "bad"),) if row.removed else ()
    between = ((" ", "quiet"),) if added and removed else ()
    return (("  ", "quiet"), *added, *between, *removed) if added or removed else ()


def _cut(text: str, width: int, most: int) -> list[str]:
    """The text in at most so many lines; the last one says that there is more."""
    parts = wrap(text, width)
    if len(parts) <= most:
        return parts
    return [*parts[: most - 1], clip(parts[most - 1] + " " + parts[most], width - 1).rstrip(ELLIPSIS) + ELLIPSIS]


def _time(ts: str) -> str:
    return local(ts, "%H:%M ") if parse_ts(ts) is not None else " " * 6
