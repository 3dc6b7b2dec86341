"""Which records of a log are rows, with a filter or without, and searching them: all in bounded steps, none of it
drawing.
"""

from __future__ import annotations

import json
import time
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Protocol, TypeAlias

from harness.eventlog.index import OffsetIndex
from harness.reports.describe import group_of

_BLOCK = 256
_TYPE = b'"type":"'


class RecordIndex(Protocol):
    """The records of one log by position, which equals ``seq``: on our disk, or with somebody who has to be asked."""

    @property
    def home(self) -> Path | None:
        """The session's folder, with its payloads and what calls print; None when it is not on our disk."""

    def __len__(self) -> int: ...

    def close(self) -> None: ...

    def extend(self) -> int:
        """Take in what was appended; how many records, negative when the writer took some back. Raises LogError,
        OSError.
        """

    def has(self, first: int, stop: int) -> bool:
        """True when records ``first`` … ``stop - 1`` can be read now; what cannot is on its way."""

    def arrived(self) -> bool:
        """True when records came since the last call that `has` had denied."""

    def line(self, i: int) -> bytes:
        """The raw record; a damaged one comes as it is, or empty. Raises IndexError."""

    def lines(self, first: int, stop: int) -> list[bytes]:
        """Raw records in order, likewise."""


LogSource: TypeAlias = Callable[[], RecordIndex]
"""Opens a log where it is; what it raises (LogError, OSError) is shown in its place."""


class DiskIndex(OffsetIndex):
    """A log on our disk, where nothing has to be waited for."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.home = folder.parent

    def has(self, first: int, stop: int) -> bool:
        return True

    def arrived(self) -> bool:
        return False


def on_disk(folder: Path) -> LogSource:
    """The log in this folder; one that does not exist yet is an empty log."""
    return partial(DiskIndex, folder)


def group_of_line(line: bytes) -> str:
    """The filter group of a raw line, without decoding it."""
    start = line.find(_TYPE, 0, 120) + len(_TYPE)
    if start < len(_TYPE):
        return "session"
    return group_of(line[start : line.find(b'"', start, start + 120)].decode("utf-8", "replace"))


class Needle:
    """A search text, matched without regard to case against the whole record as it stands in the log."""

    __slots__ = ("_ascii", "_needle", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        escaped = json.dumps(text, ensure_ascii=False)[1:-1]
        self._ascii = escaped.isascii()
        self._needle = escaped.casefold().encode("utf-8", "replace")

    def found(self, line: bytes) -> bool:
        if self._ascii:
            return self._needle in line.lower()
        return self._needle in line.decode("utf-8", "replace").casefold().encode("utf-8", "replace")


class Rows:
    """The rows of one log: position → record.

    A filter is applied from the newest record backwards, a bounded step at a time.
    """

    def __init__(self, source: LogSource) -> None:
        """Raises LogError, OSError."""
        self._index = source()
        self.waiting = False
        """True while a filter or a search cannot go on before records are here."""
        self.groups: frozenset[str] | None = None
        # Matches before and after the place where filtering began; the older ones newest first, so that both only grow.
        self._older: array[int] = array("q")
        self._newer: array[int] = array("q")
        self._low = 0
        self._high = 0

    def close(self) -> None:
        self._index.close()

    def __len__(self) -> int:
        return len(self._index) if self.groups is None else len(self._older) + len(self._newer)

    @property
    def records(self) -> int:
        """All records of the log, filtered or not."""
        return len(self._index)

    @property
    def scanned(self) -> float:
        """Share of the log that the filter has seen, 0 to 1."""
        return 1.0 if self.groups is None or not self.records else (self._high - self._low) / self.records

    def set_filter(self, groups: frozenset[str] | None) -> None:
        """Show only records of these groups; None shows all."""
        self.groups = groups
        self._older = array("q")
        self._newer = array("q")
        self._high = len(self._index)
        self._low = self._high

    def extend(self) -> int:
        """Look at the disk again; the number of new records, negative when the writer took some back."""
        added = self._index.extend()
        if added < 0:
            end = len(self._index)
            while self._newer and self._newer[-1] >= end:
                self._newer.pop()
            if self._older and self._older[0] >= end:
                self._older = array("q", [seq for seq in self._older if seq < end])
            self._high = min(self._high, end)
            self._low = min(self._low, end)
        return added

    def step(self, budget_s: float) -> tuple[int, bool]:
        """Go on filtering for about ``budget_s``; (rows that appeared before the others, whether more is waiting)."""
        if self.groups is None:
            return 0, False
        until = time.perf_counter() + budget_s
        before = len(self._older)
        self.waiting = False
        while self._high < len(self._index):
            stop = min(self._high + _BLOCK, len(self._index))
            if not self._here(self._high, stop):
                break
            self._newer.extend(seq for seq, line in self._block(self._high, stop) if group_of_line(line) in self.groups)
            self._high = stop
            if time.perf_counter() > until:
                break
        while self._low > 0 and time.perf_counter() <= until:
            start = max(0, self._low - _BLOCK)
            if not self._here(start, self._low):
                break
            found = [seq for seq, line in self._block(start, self._low) if group_of_line(line) in self.groups]
            self._older.extend(reversed(found))
            self._low = start
        more = self._low > 0 or self._high < len(self._index)
        return len(self._older) - before, more and not self.waiting

    def _here(self, start: int, stop: int) -> bool:
        self.waiting = not self._index.has(start, stop)
        return not self.waiting

    def _block(self, start: int, stop: int) -> Iterator[tuple[int, bytes]]:
        return enumerate(self._index.lines(start, stop), start)

    def seq_at(self, position: int) -> int:
        """The record at a row. Raises IndexError."""
        if self.groups is None:
            if not 0 <= position < len(self._index):
                raise IndexError(position)
            return position
        if position < 0:
            raise IndexError(position)
        older = len(self._older)
        return self._older[older - 1 - position] if position < older else self._newer[position - older]

    def position_of(self, seq: int) -> int:
        """The row of a record, or of the first shown one after it; the last row when there is none."""
        if self.groups is None:
            return max(0, min(seq, len(self._index) - 1))
        found = bisect_left(range(len(self)), seq, key=self.seq_at)
        return max(0, min(found, len(self) - 1))

    def has(self, seq: int) -> bool:
        """True when a record can be shown now; another one is on its way."""
        return self._index.has(seq, seq + 1)

    def arrived(self) -> bool:
        """True when records came that `has` had denied."""
        return self._index.arrived()

    def line(self, seq: int) -> bytes:
        """The raw record; a damaged one comes as it is, or empty."""
        return self._index.line(seq)

    def look(self, needle: Needle, start: int, *, forward: bool) -> Iterator[int | None]:
        """Walk the records from ``start`` once around the log: None after each block without a hit (and while the next
        one is not here), at last the hit or -1.
        """
        end = len(self._index)
        if not end:
            yield -1
            return
        start = max(0, min(start, end - 1))
        spans = [(start, end), (0, start)] if forward else [(0, start + 1), (start + 1, end)]
        for first, stop in spans:
            edges = range(first, stop, _BLOCK) if forward else range(stop, first, -_BLOCK)
            for edge in edges:
                low, high = (edge, min(edge + _BLOCK, stop)) if forward else (max(first, edge - _BLOCK), edge)
                while not self._here(low, high):
                    yield None
                lines = self._index.lines(low, high)
                if not needle.found(b"\n".join(lines)):
                    yield None
                    continue
                block = list(enumerate(lines, low))
                for seq, line in block if forward else reversed(block):
                    if line and needle.found(line) and (self.groups is None or group_of_line(line) in self.groups):
                        yield seq
                        return
                yield None
        yield -1
