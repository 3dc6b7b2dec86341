"""Reading a log: walk and verify segments; tell a torn tail from damage. Standard library only."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from zlib import crc32

from harness.eventlog import head_marker
from harness.eventlog.framing import (
    GENESIS,
    MAX_LINE,
    TRAILER,
    BadLine,
    LogError,
    NewerLog,
    check_line,
    hash_of,
    is_footer,
    is_header,
    parse_mark,
    seq_of,
    whole,
)
from harness.eventlog.regular_files import opened

_NAME = re.compile(r"(\d{6})\.jsonl")
_BUFFER = 256 * 1024


class DamagedLog(LogError):
    """Bytes before the last valid record are wrong; never repaired.

    ``seq`` is the first record that cannot be trusted.
    """

    def __init__(self, file: Path, offset: int, seq: int, why: str) -> None:
        super().__init__(
            f"log is damaged: {file} at byte {offset}, record {seq}: {why}; records before it are good, nothing was"
            " changed"
        )
        self.file = file
        self.offset = offset
        self.seq = seq
        self.why = why


@dataclass(frozen=True, slots=True)
class Problem:
    """Where a log is damaged."""

    file: str
    offset: int
    seq: int
    why: str


@dataclass(frozen=True, slots=True)
class Torn:
    """An unfinished write at the end: harmless, cut when the log is next opened for writing."""

    file: str
    offset: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Report:
    """Outcome of `verify`: ``records`` good events up to ``head``, whose chain hash is ``hash`` (hex)."""

    ok: bool
    records: int
    segments: int
    head: int
    hash: str
    problem: Problem | None = None
    torn: Torn | None = None


@dataclass(frozen=True, slots=True)
class Place:
    """Where one record stands: bytes ``begin`` to ``end`` of a segment whose first record is ``first``."""

    segment: int
    first: int
    begin: int
    end: int
    seq: int
    hash: bytes


def segment_name(number: int) -> str:
    return f"{number:06d}.jsonl"


def segments(folder: Path) -> list[int]:
    """Numbers of the segments, ascending.

    Raises DamagedLog when one is missing, FileNotFoundError when the folder is.
    """
    found = sorted(int(m[1]) for name in os.listdir(folder) if (m := _NAME.fullmatch(name)))
    for expected, number in enumerate(found, 1):
        if number != expected:
            raise DamagedLog(folder / segment_name(expected), 0, -1, "this segment is missing")
    return found


class Scan:
    """Walks one segment and checks every line.

    When `events` is exhausted, ``offset`` is the end of the last good line and ``chain`` its hash; ``head`` and
    ``hash`` are those of the last record; ``sealed`` says that the footer was seen, ``torn`` that an unfinished write
    follows, and ``bad`` is empty or says what is damaged.
    """

    __slots__ = ("bad", "chain", "first", "hash", "head", "known", "number", "offset", "path", "sealed", "sid", "torn")

    def __init__(
        self,
        path: Path,
        number: int,
        chain: bytes,
        head: int,
        sid: str = "",
        last: bytes = GENESIS,
        known: head_marker.Head | None = None,
    ) -> None:
        """``known``: a record that the log must reach, and that must be this one where it stands in this segment."""
        self.hash = last
        self.path = path
        self.number = number
        self.chain = chain
        self.head = head
        self.sid = sid
        self.first = head + 1
        self.offset = 0
        self.sealed = False
        self.torn = False
        self.bad = ""
        self.known = known

    def resume(self, place: Place) -> None:
        """Go on behind a record of this segment instead of at its beginning; that it stands there is known."""
        self.first = place.first
        self.offset = place.end
        self.head = place.seq
        self.chain = place.hash
        self.hash = place.hash

    def events(self, last: bool) -> Iterator[bytes]:
        """Event lines with their line feed; ``last``: no segment follows, so the end may be torn.

        Raises NewerLog; OSError when the file cannot be read.
        """
        tried = -1
        while True:
            yield from self._pass()
            if self.bad and last and torn(self.path, self.offset):
                self.torn = True
                self.bad = ""
            if not self.bad:
                if last and self.known is not None and self.known.seq > self.head:
                    self.bad = _ends_early(self.head, self.known)
                return
            if tried == self.offset:
                return
            # A live writer may have finished the line between our two looks: only what is wrong twice is damage.
            tried = self.offset

    def _pass(self) -> Iterator[bytes]:
        self.bad = ""
        try:
            file = opened(self.path, _BUFFER)
        except BadLine as exc:
            self.bad = str(exc)
            return
        with file:
            read = file.readline
            try:
                if self.offset:
                    file.seek(self.offset)
                else:
                    self._header(read(MAX_LINE + 1))
                chain = self.chain
                seq = self.head
                marked = self.known.seq if self.known is not None else -1
                while line := read(MAX_LINE + 1):
                    body = line[:-TRAILER]
                    chained = sha256(chain + body).digest()[:16]
                    # The whole trailer is compared at once; only a mismatch pays for finding out why.
                    if line[-TRAILER:] != b',"_c":"%08x","_h":"%b"}\n' % (crc32(body), chained.hex().encode()):
                        check_line(line, chain)
                    if not line.startswith(b'{"v":1,"seq":%d,' % (seq + 1)):
                        if self._footer(line):
                            self.chain = chained
                            self.sealed = True
                            self.offset += len(line)
                            if file.read(1):
                                raise BadLine("bytes follow the footer of a sealed segment")
                            return
                        raise BadLine(f"expected record {seq + 1} here")
                    if seq + 1 == marked and self.known is not None and chained != self.known.hash:
                        raise BadLine(
                            f"record {marked} is not the one that was acknowledged (the log was written anew)"
                        )
                    chain = chained
                    self.chain = chained
                    self.hash = chained
                    seq = seq + 1
                    self.head = seq
                    self.offset += len(line)
                    yield line
            except BadLine as exc:
                self.bad = str(exc)

    def _header(self, line: bytes) -> None:
        if not line:
            raise BadLine("the segment has no header")
        chained = check_line(line, self.chain)
        if not is_header(line):
            raise BadLine("the segment does not begin with a header")
        mark = parse_mark(line)
        if (
            mark.get("segment") != self.number
            or mark.get("prev") != self.chain.hex()
            or mark.get("first_seq") != self.first
        ):
            raise BadLine("the header does not continue the segment before it")
        if self.sid and mark.get("sid") != self.sid:
            raise BadLine(f"the header belongs to session {str(mark.get('sid'))[:40]!r}")
        self.sid = str(mark.get("sid", ""))
        self.chain = chained
        self.offset = len(line)

    def _footer(self, line: bytes) -> bool:
        if not is_footer(line):
            return False
        mark = parse_mark(line)
        if mark.get("count") != self.head - self.first + 1 or mark.get("last_seq") != self.head:
            raise BadLine("the footer does not match the segment's records")
        return True

    def damage(self) -> DamagedLog:
        return DamagedLog(self.path, self.offset, self.head + 1, self.bad)


def torn(path: Path, offset: int) -> bool:
    """True when no line ends at or after ``offset``: an unfinished write.

    A line that is whole and wrong is damage, wherever it stands.
    """
    try:
        with opened(path) as file:
            file.seek(offset)
            return not any(b"\n" in piece for piece in iter(lambda: file.read(_BUFFER), b""))
    except BadLine:
        return False


def _ends_early(head: int, known: head_marker.Head) -> str:
    return f"the log ends after record {head}, but record {known.seq} was acknowledged: the records between are missing"


def missing(folder: Path, known: head_marker.Head) -> DamagedLog:
    """The damage of a log without any segment that is known to have had records."""
    return DamagedLog(folder / segment_name(1), 0, 0, _ends_early(-1, known))


def stands(folder: Path, place: Place) -> bool:
    """True when exactly this record is at this place; nothing is said of what is before it. Raises OSError."""
    try:
        with opened(folder / segment_name(place.segment)) as file:
            file.seek(place.begin)
            line = file.read(max(0, min(place.end - place.begin, MAX_LINE)))
        return whole(line) and seq_of(line) == place.seq and hash_of(line) == place.hash
    except (BadLine, FileNotFoundError):
        return False


def verify_before(folder: Path, place: Place) -> Problem | None:
    """Check every byte up to the record at ``place``, which a writer may still go on behind; the damage, if any.

    Raises NewerLog.
    """
    scan = Scan(folder / segment_name(1), 1, GENESIS, -1)
    for number in range(1, place.segment + 1):
        scan = Scan(folder / segment_name(number), number, scan.chain, scan.head, scan.sid, scan.hash)
        try:
            for _ in scan.events(last=False):
                if scan.head == place.seq:
                    if scan.hash == place.hash:
                        return None
                    scan.bad = "the record is not the one that the log goes on from"
                    break
        except OSError as exc:
            scan.bad = f"the segment cannot be read: {exc.strerror}"
        if not scan.bad and (not scan.sealed or number == place.segment):
            scan.bad = "the segment ends before a record that was there"
        if scan.bad:
            return Problem(str(scan.path), scan.offset, scan.head + 1, scan.bad)
    return None


def verify(folder: Path) -> Report:
    """Check every byte of a log, and that it reaches as far as was acknowledged. Damage, a segment that cannot be read
    and a torn tail are reported; raises NewerLog, and OSError without the folder.
    """
    known = head_marker.load(folder)  # first, so that a living writer can only be further than this
    try:
        numbers = segments(folder)
        if not numbers and known is not None:
            raise missing(folder, known)
    except DamagedLog as exc:
        return Report(False, 0, 0, -1, GENESIS.hex(), Problem(str(exc.file), exc.offset, exc.seq, exc.why))
    chain = GENESIS
    head = -1
    last_hash = GENESIS
    sid = ""
    problem = None
    rest = None
    number = 0
    for number in numbers:
        scan = Scan(folder / segment_name(number), number, chain, head, sid, last_hash, known)
        last = number == numbers[-1]
        try:
            for _ in scan.events(last):
                pass
        except OSError as exc:
            scan.bad = f"the segment cannot be read: {exc.strerror}"
        chain = scan.chain
        head = scan.head
        last_hash = scan.hash
        sid = scan.sid
        if not scan.bad and not scan.sealed and not last:
            scan.bad = "the segment is not sealed though another follows"
        if scan.bad:
            problem = Problem(str(scan.path), scan.offset, head + 1, scan.bad)
            break
        if scan.torn and (size := scan.path.stat().st_size - scan.offset) > 0:
            rest = Torn(str(scan.path), scan.offset, size)
    return Report(problem is None, head + 1, number, head, last_hash.hex(), problem, rest)


def start_of(folder: Path, after: int) -> tuple[int, bytes, int]:
    """(segment, chain before it, last seq before it): the newest segment that holds the record after ``after``."""
    for number in reversed(segments(folder)[1:]):
        try:
            with opened(folder / segment_name(number)) as file:
                line = file.readline(MAX_LINE + 1)
        except BadLine as exc:
            raise DamagedLog(folder / segment_name(number), 0, -1, str(exc)) from exc
        if is_header(line) and whole(line):
            mark = parse_mark(line)
            first = mark.get("first_seq")
            prev = str(mark.get("prev"))
            if isinstance(first, int) and first <= after + 1 and re.fullmatch("[0-9a-f]{32}", prev):
                return number, bytes.fromhex(prev), first - 1
    return 1, GENESIS, -1


def read(folder: Path, after: int = -1) -> Iterator[bytes]:
    """Verified event lines (without line feed) with ``seq > after``; segments wholly before ``after`` are not read.

    Ends quietly at a torn tail. Raises DamagedLog at damage, after yielding all that is good before it.
    """
    number, chain, head = start_of(folder, after)
    for seq, line in walk(folder, number, chain, head):
        if seq > after:
            yield line


def walk(folder: Path, number: int = 1, chain: bytes = GENESIS, head: int = -1) -> Iterator[tuple[int, bytes]]:
    """(seq, line) of every event from that segment on, which begins behind ``head`` with this ``chain``.

    Ends quietly at a torn tail. Raises DamagedLog at damage, after yielding all that is good before it.
    """
    path = folder / segment_name(number)
    sid = ""
    while os.path.lexists(path):
        following = folder / segment_name(number + 1)
        last = not os.path.lexists(following)
        scan = Scan(path, number, chain, head, sid)
        for line in scan.events(last):
            yield scan.head, line[:-1]
        if not scan.bad and not scan.sealed and not last:
            scan.bad = "the segment is not sealed though another follows"
        if scan.bad:
            raise scan.damage()
        if not scan.sealed:
            return
        number = number + 1
        chain = scan.chain
        head = scan.head
        sid = scan.sid
        path = following


__all__ = [
    "DamagedLog",
    "NewerLog",
    "Place",
    "Problem",
    "Report",
    "Scan",
    "Torn",
    "read",
    "segment_name",
    "segments",
    "stands",
    "start_of",
    "torn",
    "verify",
    "verify_before",
    "walk",
]
