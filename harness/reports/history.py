"""A session's log for its own agent: short lines with their numbers, bounded in all directions. Blocking."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import msgspec

from harness.eventlog.index import OffsetIndex
from harness.events import types as t
from harness.reports.describe import describe

LIMIT = 30
MOST_BYTES = 7 * 1024
"""Of an answer: it stays below what becomes a payload of its own."""
MOST_LOOKED_AT = 20_000
"""Records that one question looks at."""
_LINE = 220
_PIECE = 256
_SCAN = 1 << 20


@dataclass(frozen=True, slots=True)
class Question:
    """``kind`` is a type or a family of types; ``start`` None = backwards from the newest."""

    grep: str = ""
    kind: str = ""
    start: int | None = None
    limit: int = LIMIT


def answer(log: OffsetIndex, asked: Question) -> str:
    """The records that fit, oldest first, and how to go on. Raises OSError, LogError."""
    head = len(log)
    found: list[tuple[int, str]] = []
    size = 0
    looked_at = 0
    onward = 0
    more = False
    walk = _forwards(log, asked.start) if asked.start is not None else _backwards(log, head)
    for seq, raw in islice(walk, MOST_LOOKED_AT):
        looked_at += 1
        text = _shown(raw, asked)
        size += 0 if text is None else len(text.encode("utf-8", "replace")) + 1
        if text is not None and (len(found) >= asked.limit or size > MOST_BYTES):
            onward = seq
            more = True
            break
        onward = seq + 1
        if text is not None:
            found.append((seq, text))
    if asked.start is None:
        found.reverse()
    more = more or looked_at == MOST_LOOKED_AT
    return "\n".join([*(text for _, text in found), _end(asked, found, head, onward, more)])


def _end(asked: Question, found: list[tuple[int, str]], head: int, onward: int, more: bool) -> str:
    what = f"{len(found)} of {head} records shown" if found else f"none of the records looked at fits, of {head}"
    if not more:
        return f"({what}; there are no others that fit)" if found else f"({what})"
    if asked.start is not None:
        return f"({what}; go on with from {onward})"
    return f"({what}; older ones: ask again with from 0, or with a grep or a type that says more)"


def _shown(raw: bytes, asked: Question) -> str | None:
    """One record as a line; None when it was not asked for."""
    try:
        record = t.decode(raw)
    except msgspec.DecodeError:
        return None
    kind = record.type
    if asked.kind and kind != asked.kind and not kind.startswith(f"{asked.kind}."):
        return None
    summary = " ".join(describe(record).summary.split())
    if asked.grep:
        wanted = asked.grep.casefold()
        if wanted not in summary.casefold() and wanted not in raw.decode("utf-8", "replace").casefold():
            return None
    text = f"#{record.seq} {record.ts[:19]} {kind}: {summary}"
    return text if len(text) <= _LINE else f"{text[: _LINE - 2]} …"


def _forwards(log: OffsetIndex, start: int) -> Iterator[tuple[int, bytes]]:
    at = start
    while at < len(log):
        lines, following = log.scan(at, _SCAN)
        yield from zip(range(at, at + len(lines)), lines, strict=True)
        at = max(following, at + 1)


def _backwards(log: OffsetIndex, stop: int) -> Iterator[tuple[int, bytes]]:
    while stop > 0:
        first = max(0, stop - _PIECE)
        lines = log.lines(first, stop)
        yield from reversed(list(zip(range(first, stop), lines, strict=True)))
        stop = first
