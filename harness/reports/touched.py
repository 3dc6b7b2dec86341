"""Which records of a log tell of a file: found by its name from the end of the log, helped by an index beside it.

The index is derived: one line for each name that a record tells of, then marks "all up to this record is in". One that
does not fit the log is ignored, and what it does not cover is read. Deleting it loses nothing.
"""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from harness.eventlog.framing import BadLine, hash_of, seq_of
from harness.eventlog.index import OffsetIndex
from harness.eventlog.reader import segment_name, segments
from harness.eventlog.regular_files import descriptor, opened
from harness.events import types as t
from harness.tools.registry import writes_file

_FORM = b"watchfloor/touched/1\n"
_BLOCK = 1 << 20
_PIECE = 4 << 20
_UNDO = b" u\n"
_TAKEN_BACK = b'"type":"undo.started"'
_HEAD = 200
"""Bytes of a line within which its type stands."""
_TYPES = {
    b'"type":"%b"' % kind.TYPE.encode(): field
    for kind, field in (
        (t.ToolEnded, b'"files_changed":'),
        (t.ToolStarted, b'"worked_names":'),
        (t.ToolProposed, b'"path":'),
        (t.EditsLooked, b'"names":'),
        (t.WorkCommitted, b'"files":'),
    )
}
"""Of each type that may name a file, what stands in a record of it that does."""


def names(body: t.Body) -> Iterable[str]:
    """The files that a record says were changed, or that its call is to write."""
    match body:
        case t.ToolEnded():
            return body.files_changed
        case t.ToolStarted():
            return body.worked_names
        case t.EditsLooked():
            return body.names
        case t.WorkCommitted():
            return body.files
        case t.ToolProposed() if writes_file(body.tool) and body.input is not None:
            return (str(body.input.get("path", "")),)
    return ()


def find(log: OffsetIndex, folder: Path, index: Path, path: str) -> Iterator[tuple[int, bool]]:
    """(number of a record, whether it begins an undo) of all that may tell of ``path``, the newest first.

    Raises LogError, OSError.
    """
    known, through = _load(index, log)
    yield from _unindexed(folder, through, _spelled(path))
    yield from _indexed(known, path)


def extend(folder: Path, index: Path, pieces: int = 8) -> None:
    """Bring the index up to the end of the log, or by so many pieces of it: the rest comes the next time. Raises
    LogError, OSError.
    """
    log = OffsetIndex(folder)
    fd = os.open(index, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        known, at = _load(index, log)
        if at + 1 >= len(log):
            return
        os.ftruncate(fd, len(known))
        os.lseek(fd, 0, os.SEEK_END)
        _write(fd, b"" if known else _FORM)
        for _ in range(pieces):
            lines, _ = log.scan(at + 1, _PIECE)
            if not lines:
                return
            at = seq_of(lines[-1])
            _write(fd, _entries(lines) + b"%d =%b\n" % (at, hash_of(lines[-1]).hex().encode()))
    finally:
        os.close(fd)
        log.close()


def _write(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


def _entries(lines: list[bytes]) -> bytes:
    """What the index says of these records."""
    block = b"\n".join(lines)
    starts = {block.rfind(b"\n", 0, at) + 1 for what in {*_TYPES.values(), _TAKEN_BACK} for at in _places(block, what)}
    return b"".join(
        _entry(block[at : end if (end := block.find(b"\n", at)) >= 0 else len(block)]) for at in sorted(starts)
    )


def _entry(line: bytes) -> bytes:
    head = line[:_HEAD]
    if _TAKEN_BACK in head:
        return b"%d%b" % (seq_of(line), _UNDO)
    field = next((field for kind, field in _TYPES.items() if kind in head), None)
    if field is None or field not in line:
        return b""
    try:
        record = t.decode(line)
    except msgspec.DecodeError:
        return b""
    return b"".join(b"%d p%b\n" % (record.seq, _quoted(path)) for path in dict.fromkeys(names(record.body)))


def _quoted(path: str) -> bytes:
    return json.dumps(path, ensure_ascii=False).encode("utf-8", "replace")


def _spelled(path: str) -> bytes:
    """As it stands in a record, without the marks around it: they are everywhere, and a search for them is slower."""
    return _quoted(path)[1:-1]


def _load(index: Path, log: OffsetIndex) -> tuple[bytes, int]:
    """What of the index counts for this log, and the last record that is in it; nothing and -1 without one."""
    try:
        with opened(index) as file:
            data = file.read()
    except (OSError, BadLine):
        return b"", -1
    end = data.rfind(b"\n") + 1
    mark = data.rfind(b" =", 0, end)
    begin = data.rfind(b"\n", 0, max(mark, 0)) + 1
    end = data.find(b"\n", mark) + 1
    try:
        seq = int(data[begin:mark])
        fits = data.startswith(_FORM) and hash_of(log.line(seq)).hex().encode() == data[mark + 2 : end - 1]
    except (ValueError, IndexError, BadLine):
        return b"", -1
    return (data[:end], seq) if fits else (b"", -1)


def _indexed(known: bytes, path: str) -> Iterator[tuple[int, bool]]:
    found = {seq: False for seq in _seqs(known, b" p%b\n" % _quoted(path))}
    found |= dict.fromkeys(_seqs(known, _UNDO), True)
    yield from sorted(found.items(), reverse=True)


def _seqs(known: bytes, wanted: bytes) -> Iterator[int]:
    at = known.find(wanted)
    while at >= 0:
        yield int(known[known.rfind(b"\n", 0, at) + 1 : at])
        at = known.find(wanted, at + len(wanted))


def _unindexed(folder: Path, through: int, wanted: bytes) -> Iterator[tuple[int, bool]]:
    """Backwards through the log, down to record ``through``."""
    for number in reversed(segments(folder)):
        fd = descriptor(folder / segment_name(number))
        try:
            for block in _backwards(fd):
                for line in reversed(list(_lines(block, wanted, _TAKEN_BACK))):
                    seq = seq_of(line)
                    if seq > through:
                        yield seq, _TAKEN_BACK in line[:_HEAD]
                oldest = next((seq for seq in map(seq_of, block[: _HEAD * 20].split(b"\n")) if seq >= 0), through + 1)
                if oldest <= through:
                    return
        finally:
            os.close(fd)


def _lines(block: bytes, *wanted: bytes) -> Iterator[bytes]:
    """Lines of a block that hold one of these, in order."""
    starts = {block.rfind(b"\n", 0, at) + 1 for what in wanted for at in _places(block, what)}
    for start in sorted(starts):
        end = block.find(b"\n", start)
        yield block[start : end if end >= 0 else len(block)]


def _places(block: bytes, wanted: bytes) -> Iterator[int]:
    at = block.find(wanted)
    while at >= 0:
        yield at
        at = block.find(wanted, at + 1)


def _backwards(fd: int) -> Iterator[bytes]:
    """Whole lines of a file in pieces, the last first."""
    stop = os.fstat(fd).st_size
    window = _BLOCK
    while stop > 0:
        low = max(0, stop - window)
        data = os.pread(fd, stop - low, low)
        begin = data.find(b"\n") + 1 if low else 0
        if low and (not begin or begin == len(data)):
            window *= 2
            continue
        yield data[begin:]
        stop = low + begin
        window = _BLOCK
