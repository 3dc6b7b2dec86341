"""What a write or an edit would make of a file, as text that says all of it: every byte before and after can be told
from it. Pure.

The form is a unified diff. Texts are compared line by line, split at line feeds alone, so that a carriage return, a
form feed or a NUL stays a character of its line (and gets its mark where it is displayed). What is no text is compared
as a hexdump. Comparing takes time in proportion to the size, whatever the content is: the worst case of `difflib` is
cubic, and an agent chooses what is compared.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from harness.domain.calls.card_facts import RunFile
from harness.domain.text.formatting import counted
from harness.views.session_views import NOT_COMPARED, NOT_SHOWN

HEAD = 48 * 1024
"""Characters of a comparison's beginning that a card shows at most."""
TAIL = 16 * 1024
"""Characters of a comparison's end that a card shows at most."""
_MOST_CHANGED = 60
_CONTEXT = 3
_DEPTH = 6
_ROW = 16
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f]")
# above so many, and one character in so many, a hexdump is easier to read than marks
_FEW_CONTROLS = 16
_MOST_CONTROLS = 8
_LAST_LINE = "\\ No newline at the end"


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison: its bytes (None: not known), and in words what is there."""

    body: bytes | None
    words: str

    @classmethod
    def of(cls, body: bytes) -> Side:
        return cls(body, f"{len(body):,} bytes, SHA-256 {hashlib.sha256(body).hexdigest()}")


def compare(before: Side, after: Side) -> str:
    """The whole comparison. A side without bytes stands for nothing, which is said in its words."""
    old = before.body or b""
    new = after.body or b""
    head = [f"--- now: {before.words}", f"+++ after: {after.words}"]
    if is_text(old) and is_text(new):
        return "\n".join([*head, *_hunks(_lines(old), _lines(new))])
    head.append("\\ not plain text: each row is 16 bytes in hexadecimal, then as ASCII")
    return "\n".join([*head, *_hunks(_rows(old), _rows(new))])


def rewritten(before: Sequence[RunFile], after: Sequence[RunFile]) -> list[str]:
    """How the files that a call runs differ from what was shown of them: each as a text of several lines."""
    known = {one.path: one for one in before if not one.problem}
    found: list[str] = []
    for now in after:
        was = known.get(now.path)
        if was is None or now.problem or was.lines == now.lines:
            continue
        lines = list(_hunks(was.lines, now.lines))
        if len(lines) > _MOST_CHANGED:
            left = len(lines) - _MOST_CHANGED
            lines = [*lines[:_MOST_CHANGED], f"(and {counted(left, 'more line')} of what changed)"]
        found.append("\n".join([f"{now.path}, before (-) and now (+):", *lines]))
    return found


def replaced(old: str, new: str, why: str) -> str:
    """An edit whose result cannot be shown in its place: the text it looks for and the text it puts there, both
    whole.
    """
    return "\n".join(
        [NOT_COMPARED + why, compare(Side.of(old.encode("utf-8", "replace")), Side.of(new.encode("utf-8", "replace")))]
    )


def on_card(whole: str) -> str:
    """What a card shows of a comparison: all of it, or its beginning and its end around a line that names what is left
    out.
    """
    if len(whole) <= HEAD + TAIL:
        return whole
    end = len(whole) - TAIL
    start = whole.rfind("\n", 0, end) + 1
    # A last line longer than the room is entered in its middle; its sign keeps it a line of the file.
    sign = "" if start == end or whole[start] not in "+- " else whole[start]
    gone = whole[HEAD:end]
    note = (
        f"{NOT_SHOWN}{len(gone):,} of {len(whole):,} characters of this comparison, about {gone.count(chr(10)):,}"
        f" lines, SHA-256 {hashlib.sha256(gone.encode()).hexdigest()}; the whole of it can be opened"
    )
    return f"{whole[:HEAD]}\n{note}\n{sign}{whole[end:]}"


def left_out(shown: str) -> bool:
    """True when a comparison as shown on a card is not all there is to see."""
    return any(line.startswith((NOT_SHOWN, NOT_COMPARED)) for line in shown.split("\n"))


def is_text(body: bytes) -> bool:
    """True for UTF-8 that is not mostly controls."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return sum(1 for _ in _CONTROLS.finditer(text)) <= max(_FEW_CONTROLS, len(text) // _MOST_CONTROLS)


def _lines(body: bytes) -> list[str]:
    """The lines of a text; a last one that no line feed ends carries the note of that, as an element of its own."""
    lines = body.decode("utf-8").split("\n")
    last = lines.pop()
    return [*lines, last + "\n" + _LAST_LINE] if last else lines


def _rows(body: bytes) -> list[str]:
    return [_row(body, at) for at in range(0, len(body), _ROW)]


def _row(body: bytes, at: int) -> str:
    part = body[at : at + _ROW]
    ascii_ = "".join(chr(b) if 0x21 <= b < 0x7F else "." for b in part)
    return f"{at:08x}  {part.hex(' ')}  |{ascii_}|"


# -- comparing -------------------------------------------------------------------------------------


def _hunks(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Unified hunks with three lines of context."""
    for group in _groups(list(_changes(old, new)), len(old)):
        first = group[0]
        last = group[-1]
        before = min(_CONTEXT, first[0])
        behind = min(_CONTEXT, len(old) - last[1])
        a = first[0] - before
        b = first[2] - before
        yield f"@@ -{_span(a, last[1] + behind)} +{_span(b, last[3] + behind)} @@"
        at = a
        for i, j, k, m in group:
            yield from (" " + line for line in old[at:i])
            yield from ("-" + line for line in old[i:j])
            yield from ("+" + line for line in new[k:m])
            at = j
        yield from (" " + line for line in old[at : last[1] + behind])


def _span(start: int, end: int) -> str:
    return f"{start + 1 if end > start else start},{end - start}"


_Change = tuple[int, int, int, int]


def _groups(changes: list[_Change], total: int) -> Iterator[list[_Change]]:
    """Changes that are so near each other that their context meets."""
    group: list[_Change] = []
    for change in changes:
        if group and change[0] - group[-1][1] > 2 * _CONTEXT:
            yield group
            group = []
        group.append(change)
    if group:
        yield group


def _changes(old: Sequence[str], new: Sequence[str]) -> Iterator[_Change]:
    """(old from, old to, new from, new to) of every stretch that differs, in order."""
    i = 0
    j = 0
    for a, b, size in _matches(old, new):
        if a > i or b > j:
            yield i, a, j, b
        i = a + size
        j = b + size
    if i < len(old) or j < len(new):
        yield i, len(old), j, len(new)


def _matches(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int, int]]:
    """(old, new, length) of equal stretches in order: equal ends first, then lines that occur once on each side
    (patience).
    """
    found: list[tuple[int, int, int]] = []
    work = [(0, len(old), 0, len(new), 0)]
    while work:
        a, a_end, b, b_end, depth = work.pop()
        start = _same(old, a, a_end, new, b, b_end, 1)
        if start:
            found.append((a, b, start))
            a = a + start
            b = b + start
        end = _same(old, a_end - 1, a - 1, new, b_end - 1, b - 1, -1)
        if end:
            a_end = a_end - end
            b_end = b_end - end
            found.append((a_end, b_end, end))
        anchors = _anchors(old, a, a_end, new, b, b_end) if a < a_end and b < b_end and depth < _DEPTH else []
        if anchors:
            for i, j in [*anchors, (a_end, b_end)]:
                # The gap before each anchor; the anchor itself is the equal end or beginning of its neighbours.
                if i > a or j > b:
                    work.append((a, min(i + 1, a_end), b, min(j + 1, b_end), depth + 1))
                elif i < a_end:
                    found.append((i, j, 1))
                a = i + 1
                b = j + 1
    return _joined(sorted(found))


def _same(old: Sequence[str], a: int, a_end: int, new: Sequence[str], b: int, b_end: int, step: int) -> int:
    """How many neighbours are equal from (a, b) on."""
    size = 0
    while a != a_end and b != b_end and old[a] == new[b]:
        a = a + step
        b = b + step
        size = size + 1
    return size


def _anchors(old: Sequence[str], a: int, a_end: int, new: Sequence[str], b: int, b_end: int) -> list[tuple[int, int]]:
    """The longest run of lines that occur once on each side and stand in the same order on both."""
    ours = Counter(old[a:a_end])
    theirs = Counter(new[b:b_end])
    place = {line: j for j, line in enumerate(new[b:b_end], b) if theirs[line] == 1 and ours[line] == 1}
    pairs = [(i, place[line]) for i, line in enumerate(old[a:a_end], a) if line in place]
    ends: list[int] = []
    tops: list[int] = []
    back: list[int] = []
    for index, (_, j) in enumerate(pairs):
        at = bisect_left(ends, j)
        back.append(tops[at - 1] if at else -1)
        if at == len(ends):
            ends.append(j)
            tops.append(index)
        else:
            ends[at] = j
            tops[at] = index
    run: list[tuple[int, int]] = []
    at = tops[-1] if tops else -1
    while at >= 0:
        run.append(pairs[at])
        at = back[at]
    return run[::-1]


def _joined(found: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    out: list[tuple[int, int, int]] = []
    for a, b, size in found:
        if out and out[-1][0] + out[-1][2] == a and out[-1][1] + out[-1][2] == b:
            out[-1] = (out[-1][0], out[-1][1], out[-1][2] + size)
        else:
            out.append((a, b, size))
    return out
