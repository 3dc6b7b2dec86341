"""The files and lines of a patch in unified form, as git writes it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_HEADER = "diff --git "
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_NAMES = re.compile(r'"?a/(.*?)"? "?b/(.*?)"?')
_QUOTED = re.compile(r"\\([0-7]{3}|.)")
_SAID = {"n": "\n", "t": "\t", "r": "\r"}


class Section(NamedTuple):
    """What a patch says of one file, from its header on; ``before`` is its name at the start."""

    path: str
    before: str
    text: str


class Line(NamedTuple):
    """A line that was added, or removed; its number is that of the file as it is, or was."""

    text: str
    number: int
    added: bool


def sections(patch: str) -> Iterator[Section]:
    """The parts of a patch, one for each file. A line of a file never begins as a header does."""
    for text in re.split(rf"^(?={re.escape(_HEADER)})", patch, flags=re.MULTILINE):
        if text.startswith(_HEADER):
            head = text.partition("\n")[0].removeprefix(_HEADER)
            yield Section(_name(text, "+++ ", head, 2), _name(text, "--- ", head, 1), text)


def _name(text: str, mark: str, head: str, side: int) -> str:
    for line in text.split("\n", 12)[1:12]:
        if line.startswith("@@"):
            break
        if line.startswith(mark) and not line.endswith("/dev/null"):
            return _plain(line.removeprefix(mark))[2:]
        if line.startswith("rename to ") and side == 2:
            return _plain(line.removeprefix("rename to "))
        if line.startswith("rename from ") and side == 1:
            return _plain(line.removeprefix("rename from "))
    half = head[: len(head) // 2]
    if head == f"{half} b/{half.removeprefix('a/')}":
        return half.removeprefix("a/")
    found = _NAMES.fullmatch(head)
    return _plain(found[side]) if found is not None else head


def _plain(name: str) -> str:
    """A name as it is, of one that stands in quotes where it has to."""
    name = name.removesuffix("\t")
    if not name.startswith('"'):
        return name
    return _QUOTED.sub(lambda m: chr(int(m[1], 8)) if m[1].isdigit() else _SAID.get(m[1], m[1]), name.strip('"'))


def lines(text: str) -> Iterator[Line]:
    """The lines of one file that were added or removed."""
    old = 0
    new = 0
    inside = False
    for line in text.split("\n"):
        if match := _HUNK.match(line):
            old = int(match[1])
            new = int(match[2])
            inside = True
        elif inside and line.startswith("+"):
            yield Line(line[1:], new, True)
            new += 1
        elif inside and line.startswith("-"):
            yield Line(line[1:], old, False)
            old += 1
        elif inside and line.startswith(" "):
            old += 1
            new += 1
