"""Random access to the events of a log by ``seq``, without reading the rest. Standard library only.

Sequence numbers are dense and ordered, so a log is its own index: a line is found by bisecting byte offsets, and only
the starts of pages of `PAGE` lines are remembered. Opening costs a few reads whatever the size. Files are read with
``pread``, never mapped: a writer that cuts its torn tail would turn a mapped page into a fatal signal in the reader.
Lines are located, not verified; `reader.verify` and `reader.read` do that.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from harness.eventlog.framing import MAX_LINE, BadLine, is_header, parse_mark, seq_of, whole
from harness.eventlog.reader import segment_name
from harness.eventlog.regular_files import descriptor

PAGE = 64
_PROBE = 4096
_CHUNK = 32 * 1024


@dataclass(slots=True)
class _Segment:
    """An open segment: events ``first`` … live in bytes ``start`` … ``end``; ``pages`` maps page number to offset."""

    number: int
    fd: int
    first: int
    start: int
    end: int
    pages: dict[int, int]


class OffsetIndex:
    """The events of one log folder, by position; position equals ``seq``. Not thread-safe: one index per thread."""

    def __init__(self, folder: Path) -> None:
        """Open what is there; a folder that does not exist (yet) is an empty log. Raises NewerLog, OSError."""
        self._folder = folder
        self._segments: list[_Segment] = []
        self._firsts: list[int] = []
        self._count = 0
        self._cached_page = -1
        self._cached: list[bytes] = []
        self.extend()

    def __len__(self) -> int:
        return self._count

    def close(self) -> None:
        for segment in self._segments:
            os.close(segment.fd)
        self._segments.clear()
        self._firsts.clear()
        self._count = 0
        self._cached_page = -1

    def extend(self) -> int:
        """Look at the disk again; returns how many events were added, negative when the writer cut its tail."""
        before = self._count
        while self._open_next():
            pass
        if self._segments:
            self._measure(self._segments[-1])
        return self._count - before

    def line(self, i: int) -> bytes:
        """The event line (without line feed) with ``seq`` i; a damaged one comes as it is, or empty.

        Raises IndexError outside the log.
        """
        if not 0 <= i < self._count:
            raise IndexError(i)
        page = i // PAGE
        if page != self._cached_page:
            self._cached = self.lines(page * PAGE, min(self._count, page * PAGE + PAGE))
            self._cached_page = page
        return self._cached[i % PAGE] if i % PAGE < len(self._cached) else b""

    def lines(self, first: int, stop: int) -> list[bytes]:
        """Lines ``first`` … ``stop - 1`` in order, read forward; a damaged one comes as it is, or empty."""
        first = max(first, 0)
        stop = min(stop, self._count)
        out: list[bytes] = [b""] * max(0, stop - first)
        want = first
        while want < stop:
            at = bisect_right(self._firsts, want) - 1
            segment = self._segments[at]
            limit = min(stop, self._firsts[at + 1]) if at + 1 < len(self._firsts) else stop
            offset = self._find(segment, want)
            skip = want - self._seq_at(segment, offset)
            block = list(islice(self._forward(segment, offset), skip, skip + limit - want)) if skip >= 0 else []
            if len(block) == limit - want and seq_of(block[0]) == want and seq_of(block[-1]) == limit - 1:
                # Dense and ordered, so both ends in place means that all between them are.
                out[want - first : limit - first] = block
                want = limit
                continue
            for line in self._forward(segment, offset):
                seq = seq_of(line)
                if seq >= limit:
                    break
                if seq >= want:
                    out[seq - first] = line
                if seq == limit - 1:
                    break
            want = limit
        return out

    def scan(self, first: int, max_bytes: int) -> tuple[list[bytes], int]:
        """(event lines from ``first`` on within about ``max_bytes``, the next ``first``): one step of a walk over the
        log.

        At the end of the log the list is empty and the next position is the log's length.
        """
        if first >= self._count:
            return [], self._count
        at = bisect_right(self._firsts, first) - 1
        segment = self._segments[at]
        limit = self._firsts[at + 1] if at + 1 < len(self._firsts) else self._count
        out: list[bytes] = []
        room = max_bytes
        seen = first - 1
        for line in self._forward(segment, self._find(segment, first), max_bytes):
            seq = seq_of(line)
            if seq >= limit:
                break
            if seq <= seen:
                continue
            out.append(line)
            seen = seq
            room -= len(line)
            if room <= 0:
                return out, seen + 1
        return out, limit

    # -- growth ------------------------------------------------------------------------------------

    def _open_next(self) -> bool:
        number = len(self._segments) + 1
        try:
            fd = descriptor(self._folder / segment_name(number))
        except (FileNotFoundError, BadLine):  # what is no file ends the log here, as damage does
            return False
        head = os.pread(fd, _PROBE, 0)
        header = head[: head.find(b"\n") + 1]
        try:
            first = self._first_of(header)
        except BaseException:
            os.close(fd)
            raise
        if first < 0:
            os.close(fd)
            return False
        if self._segments:
            self._measure(self._segments[-1], sealed_before=first)
        self._segments.append(_Segment(number, fd, first, len(header), len(header), {}))
        self._firsts.append(first)
        self._count = max(self._count, first)
        return True

    def _first_of(self, header: bytes) -> int:
        """The first ``seq`` of the segment that this line begins; -1 when it begins none that can follow what is known.

        Raises NewerLog.
        """
        try:
            first = parse_mark(header).get("first_seq") if is_header(header) and whole(header) else None
        except BadLine:
            return -1
        if not isinstance(first, int) or not self._segments:
            return 0 if first == 0 else -1
        before = self._segments[-1]
        return first if before.first <= first <= before.first + os.fstat(before.fd).st_size else -1

    def _measure(self, segment: _Segment, sealed_before: int | None = None) -> None:
        """Find the last whole event line; pages behind a cut are forgotten."""
        size = os.fstat(segment.fd).st_size
        if size == segment.end and sealed_before is None:
            return
        end, last = self._last(segment, size)
        if end < segment.end:
            segment.pages = {page: at for page, at in segment.pages.items() if at < end}
        segment.end = end
        self._cached_page = -1
        self._count = sealed_before if sealed_before is not None else last + 1

    def _last(self, segment: _Segment, size: int) -> tuple[int, int]:
        """(end, seq) of the last event line before ``size``; (start, first - 1) when there is none."""
        stop = size
        while stop > segment.start:
            window = _PROBE
            while True:
                low = max(segment.start - 1, stop - window)
                data = os.pread(segment.fd, stop - low, low)
                end = data.rfind(b"\n") + 1
                begin = data.rfind(b"\n", 0, end - 1) + 1 if end else 0
                if begin or low < segment.start or window > 2 * MAX_LINE:
                    break
                window *= 4
            if not end or not begin:
                break
            seq = seq_of(data[begin:end])
            if seq >= 0:
                return low + end, seq
            # A footer or a damaged line: the one before it counts.
            stop = low + begin
        return segment.start, segment.first - 1

    # -- finding -----------------------------------------------------------------------------------

    def _find(self, segment: _Segment, seq: int) -> int:
        """Offset of the line of ``seq``, or of the first readable line after it."""
        page = seq // PAGE
        known = segment.pages.get(page)
        if known is not None and self._seq_at(segment, known) == max(page * PAGE, segment.first):
            return known
        target = max(page * PAGE, segment.first)
        low = segment.start
        high = segment.end
        if target == segment.first:
            low = segment.start
            high = segment.start
        while high - low > _PROBE:
            middle = (low + high) // 2
            found, begin = self._seq_from(segment, middle, high)
            if found < 0:
                high = middle
            elif found < target:
                low = begin
            elif found == target:
                low = begin
                high = begin
            else:
                high = middle
        offset = self._walk(segment, low, target)
        segment.pages[page] = offset
        return offset

    def _seq_at(self, segment: _Segment, offset: int) -> int:
        return seq_of(os.pread(segment.fd, 64, offset))

    def _seq_from(self, segment: _Segment, offset: int, high: int) -> tuple[int, int]:
        """(seq, begin) of the first event line that begins after ``offset``; seq -1 when none begins before
        ``high``.
        """
        at = offset
        while at < high:
            data = os.pread(segment.fd, _PROBE, at)
            if not data:
                break
            feed = data.find(b"\n")
            if feed < 0:
                at += len(data)
                continue
            begin = at + feed + 1
            if begin >= high:
                break
            seq = self._seq_at(segment, begin)
            if seq >= 0:
                return seq, begin
            at = begin
        return -1, high

    def _walk(self, segment: _Segment, offset: int, target: int) -> int:
        """From a line start at or before ``target`` to the line of ``target``, or the first readable one after it."""
        at = offset
        for line in self._forward(segment, offset):
            if seq_of(line) >= target:
                return at
            at += len(line) + 1
        return at

    def _forward(self, segment: _Segment, offset: int, chunk: int = _CHUNK) -> Iterator[bytes]:
        """Whole lines from ``offset`` to the end of the segment, read in chunks, without their line feeds."""
        at = offset
        rest = b""
        while at < segment.end:
            data = os.pread(segment.fd, min(chunk, 1 << 20, segment.end - at), at)
            if not data:
                return
            at += len(data)
            parts = (rest + data).split(b"\n")
            rest = parts.pop()
            yield from parts
