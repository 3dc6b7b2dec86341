"""A patch by its files: every line with its numbers on both sides, and where the hunks begin. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.views.replies import FileDiff
from widgets.diff.patch import hunk_range, roles

_ESCAPE = re.compile(rb'\\([0-7]{3}|[abtnvfr"\\])')
_LETTERS = {b"a": 7, b"b": 8, b"t": 9, b"n": 10, b"v": 11, b"f": 12, b"r": 13, b'"': 34, b"\\": 92}
_NAMED = ("+++ ", "--- ", "rename to ")
_NOTHING_KNOWN = "of this file no lines were read; its counts stand beside its name"


@dataclass(frozen=True, slots=True)
class PatchRow:
    """One line of a patch as it is (untrusted). ``old`` and ``new`` are its line numbers from 1; 0 = not on that
    side.
    """

    text: str
    role: str
    old: int = 0
    new: int = 0


@dataclass(frozen=True, slots=True)
class FilePatch:
    """A changed file: never without a row. ``hunks`` are the rows where hunks begin, ``status`` is empty for a file
    that only the patch names, the counts are None when nobody counted.
    """

    path: str
    status: str
    added: int | None
    removed: int | None
    rows: tuple[PatchRow, ...]
    hunks: tuple[int, ...]

    @property
    def changes(self) -> tuple[int, ...]:
        """The row of each hunk where its first change stands."""
        changed = [at for at, row in enumerate(self.rows) if row.role in ("add", "remove")]
        return tuple(next((at for at in changed if at > hunk), hunk) for hunk in self.hunks)


Place = tuple[int, int]
"""A file and a row of it."""


def files_of(patch: str, known: Sequence[FileDiff]) -> list[FilePatch]:
    """The files of ``known`` in their order with their rows of the patch, then those
    that the patch alone names. No line of the patch is left out but those that only name a file.
    """
    found: dict[str, list[PatchRow]] = {}
    for rows in _sections(patch):
        found.setdefault(_path(rows), []).extend(rows)
    made = [_file(one.path, one.status, one.added, one.removed, found.pop(one.path, [])) for one in known]
    return made + [_file(path, "", None, None, rows) for path, rows in found.items()]


def _file(path: str, status: str, added: int | None, removed: int | None, rows: Sequence[PatchRow]) -> FilePatch:
    shown = tuple(row for row in rows if row.role != "file") or (PatchRow(_NOTHING_KNOWN, "meta"),)
    hunks = tuple(at for at, row in enumerate(shown) if row.role == "hunk")
    return FilePatch(path, status, added, removed, shown, hunks)


def _sections(patch: str) -> Iterator[list[PatchRow]]:
    lines = patch.split("\n")
    if not lines[-1]:
        lines.pop()
    section: list[PatchRow] = []
    old = 0
    new = 0
    for text, role in zip(lines, roles(lines), strict=True):
        if role == "file" and section:
            yield section
            section = []
        if role == "hunk":
            old, new = hunk_range(text)
        on_old = role in ("remove", "context")
        on_new = role in ("add", "context")
        section.append(PatchRow(text, role, old if on_old else 0, new if on_new else 0))
        old += on_old
        new += on_new
    if section:
        yield section


def _path(rows: Sequence[PatchRow]) -> str:
    """The name that a section gives its file: the new one, or the old one of a file that is gone."""
    named: dict[str, str] = {}
    for row in rows:
        if row.role == "hunk":
            break
        head = next((head for head in _NAMED if row.text.startswith(head)), "")
        if head and row.role == "meta":
            named[head] = unquoted(row.text[len(head) :])
    if "rename to " in named:
        return named["rename to "]
    for head, side in (("+++ ", "b/"), ("--- ", "a/")):
        if named.get(head, "/dev/null") != "/dev/null":
            return named[head].removeprefix(side)
    return _twice(rows[0].text.removeprefix("diff --git "))


def _twice(text: str) -> str:
    """The name of ``a/NAME b/NAME``, which is the same twice where no other line names the file."""
    half = unquoted(text[len(text) // 2 + 1 :])
    return half.removeprefix("b/")


def unquoted(name: str) -> str:
    """A name as it is, of one as git spells it in a patch."""
    if len(name) < 2 or not (name.startswith('"') and name.rstrip("\t").endswith('"')):
        return name.removesuffix("\t")
    inside = name.rstrip("\t")[1:-1].encode("utf-8", "surrogateescape")
    return _ESCAPE.sub(_byte, inside).decode("utf-8", "surrogateescape")


def _byte(found: re.Match[bytes]) -> bytes:
    code = found[1]
    return bytes((_LETTERS[code] if code in _LETTERS else int(code, 8) & 0xFF,))


def beside(rows: Sequence[PatchRow]) -> list[tuple[int, int]]:
    """The rows as lines of two halves: (row on the left, row on the right), -1 where a half is empty. A row stands
    on one line, unchanged text on both halves; runs of removed and added lines stand beside each other.
    """
    made: list[tuple[int, int]] = []
    at = 0
    while at < len(rows):
        removed = _run(rows, at, "remove")
        added = _run(rows, removed, "add")
        if added == at:
            made.append((at, at))
            at += 1
            continue
        for step in range(max(removed - at, added - removed)):
            left = at + step if at + step < removed else -1
            right = removed + step if removed + step < added else -1
            made.append((left, right))
        at = added
    return made


def _run(rows: Sequence[PatchRow], at: int, role: str) -> int:
    while at < len(rows) and rows[at].role == role:
        at += 1
    return at


def next_hunk(files: Sequence[FilePatch], at: Place, step: int) -> Place | None:
    """The first change of the next hunk (``step`` 1) or of one before (-1), over the edges of files; a file without
    hunks is one.
    """
    stops = [(number, row) for number, file in enumerate(files) for row in file.changes or (0,)]
    if step > 0:
        return next((stop for stop in stops if stop > at), None)
    return next((stop for stop in reversed(stops) if stop < at), None)


def rows_of_hunk(file: FilePatch, at: int) -> Sequence[PatchRow]:
    """The rows of the hunk that this row is in; those above the first one, or all of a file without any."""
    begin = max((row for row in file.hunks if row <= at), default=0)
    end = min((row for row in file.hunks if row > at), default=len(file.rows))
    return file.rows[begin:end]


def find(files: Sequence[FilePatch], needle: str, at: Place, step: int) -> Place | None:
    """The next row (``step`` 1) or the one before (-1) with this text, whatever its case, round the end; the row itself
    comes last. None when there is none.
    """
    wanted = needle.casefold()
    places = [(number, row) for number, file in enumerate(files) for row in range(len(file.rows))]
    places.sort(reverse=step < 0)
    ahead = [place for place in places if (place > at if step > 0 else place < at)]
    behind = places[: len(places) - len(ahead)]
    return next((p for p in (*ahead, *behind) if wanted in files[p[0]].rows[p[1]].text.casefold()), None)
