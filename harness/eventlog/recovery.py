"""What a writer finds when it opens a log that is there: segments are walked, a torn end is kept apart and cut."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

from harness.domain.text import fields
from harness.eventlog import head_marker
from harness.eventlog.framing import GENESIS, BadLine, LogError, hash_of, is_footer, parse_mark, whole
from harness.eventlog.reader import DamagedLog, Place, Scan, segment_name
from harness.eventlog.regular_files import opened
from harness.linux.durable import write_all


@dataclass(frozen=True, slots=True)
class Recovery:
    """A torn tail that was cut: ``bytes`` at offset ``at`` of ``segment``, kept in ``file`` (names inside the log's
    folder).
    """

    segment: str
    at: int
    bytes: int
    sha: str
    file: str


def last_segment(folder: Path, sid: str, number: int, known: head_marker.Head | None) -> Scan:
    """The last segment walked to its end, bound to the end of the one before. Raises DamagedLog, NewerLog, OSError."""
    prev, last, last_hash = _end_of(folder / segment_name(number - 1)) if number > 1 else (GENESIS, -1, GENESIS)
    scan = Scan(folder / segment_name(number), number, prev, last, sid, last_hash, known)
    _walk(scan, last=True)
    return scan


def every_segment(
    folder: Path,
    sid: str,
    numbers: list[int],
    known: head_marker.Head | None,
    take: Callable[[bytes], None],
    after: Place | None,
) -> Scan:
    """The last segment, after all before it (behind ``after``) were walked too and each line was given to ``take``.

    Raises DamagedLog, NewerLog, OSError.
    """
    number = after.segment if after is not None else 1
    scan = Scan(folder / segment_name(number), number, GENESIS, -1, sid, GENESIS, known)
    if after is not None:
        scan.resume(after)
    while True:
        _walk(scan, last=number == numbers[-1], take=take)
        if number == numbers[-1]:
            return scan
        number += 1
        scan = Scan(folder / segment_name(number), number, scan.chain, scan.head, sid, scan.hash, known)


def cut(path: Path, folder_fd: int, fd: int, offset: int) -> Recovery | None:
    """Keep the torn bytes of an open segment in a file of their own, durable, and only then cut them off; None when
    there are none.

    Raises LogError, OSError.
    """
    size = os.fstat(fd).st_size
    if size <= offset:
        return None
    data = os.pread(fd, size - offset, offset)
    name = f"{path.name}.torn-{offset}"
    for attempt in range(1000):
        file = name if not attempt else f"{name}.{attempt}"
        try:
            kept = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=folder_fd)
            break
        except FileExistsError:
            continue
    else:
        raise LogError(f"log {path.parent} has a thousand torn tails at the same place; look at the disk")
    try:
        write_all(kept, data)
        os.fsync(kept)
    finally:
        os.close(kept)
    os.fsync(folder_fd)
    os.ftruncate(fd, offset)
    os.fsync(fd)
    return Recovery(path.name, offset, len(data), sha256(data).hexdigest(), file)


def _walk(scan: Scan, *, last: bool, take: Callable[[bytes], None] | None = None) -> None:
    """Walk one segment to its end. Raises DamagedLog, NewerLog, OSError."""
    for line in scan.events(last):
        if take is not None:
            take(line)
    if not scan.bad and not scan.sealed and not last:
        scan.bad = "the segment is not sealed though another follows"
    if scan.bad:
        raise scan.damage()


def _end_of(path: Path) -> tuple[bytes, int, bytes]:
    """(chain hash, last seq, last record's hash) from the end of a sealed segment. Raises DamagedLog."""
    try:
        with opened(path) as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 4096))
            tail = file.read()
    except BadLine as exc:
        raise DamagedLog(path, 0, -1, str(exc)) from exc
    start = tail.rfind(b"\n", 0, len(tail) - 1) + 1
    line = tail[start:]
    try:
        if not is_footer(line) or not whole(line):
            raise BadLine("the segment is not sealed though another follows")
        return hash_of(line), fields.number(parse_mark(line), "last_seq", -1), hash_of(tail[:start])
    except (BadLine, ValueError) as exc:
        raise DamagedLog(path, size - len(line), -1, str(exc)) from exc
