"""The lines of a patch: what each one is, and how it is shown. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from harness.domain.text.display_safe import to_display

_INDENT = 64
_RANGE = re.compile(r"@@ -(\d{1,9})(?:,\d+)? \+(\d{1,9})(?:,\d+)? @@", re.ASCII)


def roles(lines: Iterable[str]) -> list[str]:
    """The role of each line of a patch: file, meta, hunk, add, remove or context.

    Hunk headers are counted out, so that a removed line ``-- x`` is never taken for a file header.
    """
    out: list[str] = []
    old = 0
    new = 0
    for line in lines:
        if old > 0 or new > 0:
            head = line[:1]
            if head == "\\":
                out.append("meta")
                continue
            if head in ("+", "-", " ", ""):
                old -= head != "+"
                new -= head != "-"
                out.append({"+": "add", "-": "remove"}.get(head, "context"))
                continue
            old = 0
            new = 0
        if line.startswith("@@"):
            old, new = _counts(line)
            out.append("hunk")
        elif line.startswith("diff "):
            out.append("file")
        else:
            out.append("meta")
    return out


def _counts(hunk: str) -> tuple[int, int]:
    """Lines of the old and the new side that follow a hunk header; (0, 0) when it is none."""
    parts = hunk.split(" ", 3)
    if len(parts) < 3 or parts[1][:1] != "-" or parts[2][:1] != "+":
        return 0, 0
    try:
        old, new = (int(part[1:].partition(",")[2] or "1") for part in parts[1:3])
    except ValueError:
        return 0, 0
    return old, new


def hunk_range(hunk: str) -> tuple[int, int]:
    """The first line of a hunk on the old and on the new side; (0, 0) when it does not say."""
    found = _RANGE.match(hunk)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def code_display(text: str) -> str:
    """Display text of one line of code: like `to_display`, but indentation stays readable (a leading tab is ``␉`` and
    three blanks).
    """
    rest = text.lstrip(" \t")
    indent = text[: len(text) - len(rest)]
    if len(indent) > _INDENT:
        return to_display(text)
    return indent.replace("\t", "␉   ") + to_display(rest)


def patch_display(line: str) -> str:
    """`code_display` behind the first character of a patch line."""
    return line[0] + code_display(line[1:]) if line[:1] in ("+", "-", " ") else to_display(line)
