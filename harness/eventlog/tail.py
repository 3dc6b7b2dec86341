"""Following a log that grows: each line verified, and taken back when its writer cut it. Standard library only."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from harness.eventlog.framing import (
    GENESIS,
    MAX_LINE,
    BadLine,
    check_line,
    hash_of,
    is_event,
    is_header,
    parse_mark,
    seq_of,
)
from harness.eventlog.reader import DamagedLog, read, segment_name, start_of
from harness.eventlog.regular_files import descriptor

_REMEMBERED = 256


class Tail:
    """Follows a growing log by polling file sizes; every line is verified before it is handed out.

    A writer that cuts an unfinished batch takes back lines a reader may have seen: then lines come again from the last
    common record, so a line whose ``seq`` is not above the last one replaces what was handed out under that ``seq``.
    """

    def __init__(self, folder: Path, after: int = -1) -> None:
        self._folder = folder
        self._after = after
        self._known: deque[tuple[int, bytes]] = deque(maxlen=_REMEMBERED)
        self._fd = -1
        self._number = 0
        self._offset = 0
        self._chain = GENESIS
        self._head = -1
        self._retries = 0
        self.waiting = False
        """True when the last poll stopped at its byte limit and more can be read at once."""

    @property
    def head(self) -> int:
        """``seq`` of the last line handed out (or skipped)."""
        return self._after

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def poll(self, max_bytes: int = 65536) -> list[bytes]:
        """New event lines (without line feed) from at most ``max_bytes`` of log; one longer line is read whole.

        Returns [] when there is nothing new, also while the log does not exist yet. Raises DamagedLog, NewerLog.
        """
        self.waiting = False
        if self._fd < 0 and not self._locate():
            return []
        if os.fstat(self._fd).st_size < self._offset:
            self._relocate()
            return []
        chunk = os.pread(self._fd, max_bytes, self._offset)
        end = chunk.rfind(b"\n") + 1
        if not end and len(chunk) == max_bytes:
            chunk = os.pread(self._fd, MAX_LINE + 1, self._offset)
            end = chunk.find(b"\n") + 1
            if not end and len(chunk) > MAX_LINE:
                self._broken("the line is longer than a record can be")
                return []
        self.waiting = len(chunk) >= max_bytes
        out: list[bytes] = []
        for line in _lines(chunk[:end]):
            try:
                if self._take(line):
                    out.append(line[:-1])
            except BadLine as exc:
                self._broken(str(exc))
                break
        if not out and not end and self._next_segment():
            self.waiting = True
        return out

    def _take(self, line: bytes) -> bool:
        chain = check_line(line, self._chain)
        self._offset += len(line)
        self._chain = chain
        if is_header(line):
            parse_mark(line)
            return False
        if not is_event(line):
            return False
        self._head = seq_of(line)
        if self._head <= self._after:
            return False
        self._known.append((self._head, chain))
        self._after = self._head
        self._retries = 0
        return True

    def _locate(self) -> bool:
        try:
            number, chain, head = start_of(self._folder, self._after)
            self._fd = self._open(number)
        except FileNotFoundError:
            return False
        self._number = number
        self._chain = chain
        self._head = head
        self._offset = 0
        return True

    def _open(self, number: int) -> int:
        path = self._folder / segment_name(number)
        try:
            return descriptor(path)
        except BadLine as exc:
            raise DamagedLog(path, 0, -1, str(exc)) from exc

    def _next_segment(self) -> bool:
        try:
            fd = self._open(self._number + 1)
        except FileNotFoundError:
            return False
        if os.fstat(self._fd).st_size > self._offset:
            os.close(fd)
            self._broken("the segment is not sealed though another follows")
            return False
        os.close(self._fd)
        self._fd = fd
        self._number = self._number + 1
        self._offset = 0
        return True

    def _broken(self, why: str) -> None:
        """A line that does not follow: first assume that the writer cut its tail, and only then that the log is
        damaged.
        """
        self._retries += 1
        if self._retries > 1:
            raise DamagedLog(self._folder / segment_name(self._number), self._offset, self._head + 1, why)
        self._relocate()

    def _relocate(self) -> None:
        """Go back to the last record that both we and the file have."""
        self.close()
        if self._known:
            oldest = self._known[0][0]
            on_disk = {seq_of(line): hash_of(line) for line in islice(read(self._folder, oldest - 1), len(self._known))}
            self._after = oldest - 1
            common = [(seq, chain) for seq, chain in self._known if on_disk.get(seq) == chain]
            self._known = deque(common, maxlen=_REMEMBERED)
            if common:
                self._after = common[-1][0]
        self.waiting = True


def _lines(chunk: bytes) -> Iterator[bytes]:
    start = 0
    while end := chunk.find(b"\n", start) + 1:
        yield chunk[start:end]
        start = end
