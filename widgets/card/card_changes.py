"""Comparisons on a card: of a file that a tool would write, and of files that were changed. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from harness.domain.text.display_safe import to_display
from harness.domain.text.formatting import counted
from harness.views.session_views import NOT_COMPARED, NOT_SHOWN, NOTHING_THERE
from widgets.card.card_line import CardLine
from widgets.card.truncate import Entry, Listing, listing
from widgets.diff.patch import patch_display, roles

_NOW = "--- now: "
_AFTER = "+++ after: "
_FIRST_LINES = 3
"""Of a file that is gone."""
_ROOM = 12
"""Rows of the files that were changed that are read first."""
_SAID = 3
"""Fewer, where it has to be said what is left out."""
_SHA_256 = re.compile(r", SHA-256 [0-9a-f]{64}$")
_WHOSE = re.compile(r"^the (?:original|agent's)(?:, |: )")


def compared(diff: str, *, whole: bool) -> tuple[list[CardLine], list[CardLine]]:
    """(what a comparison shows, and what names its two sides).

    ``whole``: its lines are all that changes, so that its sides need no more than their sizes.
    """
    if not diff:
        return [], []
    lines = diff_lines(diff)
    sides = diff.split("\n", 2)[:2]
    if not whole or not sides[0].startswith(_NOW) or not sides[-1].startswith(_AFTER):
        return [CardLine("CHANGES", "label"), *lines], []
    now, after = (_bare(side, mark) for side, mark in zip(sides, (_NOW, _AFTER), strict=True))
    head = CardLine(f"CHANGES  now {to_display(now)}, then {to_display(after)}", "label")
    return [head, *lines[2:]], lines[:2]


def changes_of(diff: str, told: Sequence[str]) -> tuple[Listing, list[str]]:
    """(files that were changed, each with what became of it; those of ``told`` that have no comparison). ``told`` are
    sentences that begin with a file's name.
    """
    lines = diff.split("\n") if diff else []
    shown = diff_lines(diff) if diff else []
    starts = [at for at, role in enumerate(roles(lines)) if role == "file"]
    bounds = [*dict.fromkeys([0, *starts, len(lines)])] if lines else []
    whole = not left_out(diff)
    entries: list[Entry] = []
    named: set[str] = set()
    for start, end in pairwise(bounds):
        path = _path(lines[start])
        said = next((one for one in told if path and one.startswith(path + " ")), path)
        named.add(said)
        entries.append(_changed(lines[start:end], shown[start:end], said, whole=whole))
    found = listing(entries, _ROOM if whole else _ROOM - _SAID)
    label = CardLine("CHANGES", "label")
    rest = [label, *found.rest] if found.rest else []
    return Listing([label, *found.above] if entries else [], rest), [one for one in told if one not in named]


def _path(line: str) -> str:
    """The name in a line that begins a file's comparison; empty for any other line."""
    both = line.removeprefix("diff --git a/")
    return both[: (len(both) - 3) // 2] if both != line else ""


def _changed(lines: Sequence[str], shown: Sequence[CardLine], said: str, *, whole: bool) -> Entry:
    """``whole``: nothing of any comparison is left out, so that sizes name its sides well enough."""
    sides = lines[1:3]
    if not said or len(sides) < 2 or not sides[0].startswith(_NOW) or not sides[1].startswith(_AFTER):
        return Entry(shown[0], tuple(shown[1:]))
    gone = sides[1].endswith(NOTHING_THERE)
    found = roles(lines)
    now, after = (_WHOSE.sub("", _bare(side, mark)) for side, mark in zip(sides, (_NOW, _AFTER), strict=True))
    counts = f", +{found.count('add')} -{found.count('remove')}" if whole else ""
    head = CardLine(f"  {to_display(said)}: {to_display(now)} → {to_display(after)}{counts}", "hunk")
    details = list(shown[3 if whole else 1 :])
    if gone:
        details = _without_the_gone(details)
    return Entry(head, tuple(details))


def _without_the_gone(lines: list[CardLine]) -> list[CardLine]:
    """The first lines of a file that is gone, which is what decides, and all that stands behind its lines: where a
    comparison was cut, that may be another file's.
    """
    start = next((at for at, line in enumerate(lines) if line.role == "remove"), len(lines))
    end = next((at for at in range(start, len(lines)) if lines[at].role != "remove"), len(lines))
    kept = min(end, start + _FIRST_LINES)
    said = [CardLine(f"  … and {counted(end - kept, 'more line')} of it, all gone", "dim")] if end > kept else []
    return [*lines[:kept], *said, *lines[end:]]


def _bare(side: str, mark: str) -> str:
    """What names a side, without its hash."""
    return _SHA_256.sub("", side.removeprefix(mark))


def left_out(diff: str) -> list[str]:
    """What the changes below do not show, one sentence each; nothing for nearly every card."""
    marks = {
        NOT_SHOWN: "Not all of what it changes is on this card",
        NOT_COMPARED: "What it changes is not shown in its place",
    }
    return [
        f"{words}: {to_display(line[len(mark) :])}."
        for line in diff.split("\n")
        for mark, words in marks.items()
        if line.startswith(mark)
    ]


def diff_lines(diff: str) -> list[CardLine]:
    """A unified diff as card lines."""
    lines = diff.split("\n")
    names = {"add": "add", "remove": "remove", "hunk": "hunk", "context": "text"}
    made = [(line, names.get(role, "dim")) for line, role in zip(lines, roles(lines), strict=True)]
    return [
        CardLine("  " + patch_display(line), "warn" if line.startswith((NOT_SHOWN, NOT_COMPARED)) else role)
        for line, role in made
    ]
