"""One log line: an event, a segment's header or its footer, closed by a CRC and a chained hash. Standard library only.

The last two members are fixed in width, so the checked body is all but the last `TRAILER` bytes of a line. Chain: ``h_n
= SHA-256(h_{n-1} ‖ body)[:16]``; the CRC says whether a line itself is whole, the chain whether it is the right one.
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from hashlib import sha256
from zlib import crc32

FORMAT = 1
MAX_LINE = 1024 * 1024
GENESIS = bytes(16)
TRAILER = len(b',"_c":"00000000","_h":"00000000000000000000000000000000"}\n')

_TRAILER = re.compile(rb',"_c":"([0-9a-f]{8})","_h":"[0-9a-f]{32}"}\n')
_EVENT = b'{"v":1,"seq":'
_HEADER = b'{"v":1,"segment":'
_FOOTER = b'{"v":1,"footer":'
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


class LogError(Exception):
    """Base of everything that can be wrong with a log."""


class BadLine(LogError):
    """One line is not whole or not the next of its chain; the message says which."""


class NewerLog(LogError):
    """The log was written by a newer version of this program."""


def encode_data(data: dict[str, object]) -> bytes:
    """An event's data as JSON.

    Lone surrogates become ``?``; raises ValueError on NaN, infinity or a value that is not JSON.
    """
    try:
        return _encoder.encode(data).encode("utf-8", "replace")
    except TypeError as exc:
        raise ValueError(f"event data is not JSON: {exc}") from exc


@lru_cache(maxsize=512)
def _names(kind: str, actor: str) -> bytes:
    return f'"type":{_encoder.encode(kind)},"actor":{_encoder.encode(actor)},'.encode("utf-8", "replace")


def _trailer(body: bytes, prev: bytes) -> tuple[bytes, bytes]:
    chained = sha256(prev + body).digest()[:16]
    return b',"_c":"%08x","_h":"%b"}\n' % (crc32(body), chained.hex().encode()), chained


def closed(body: bytes, prev: bytes) -> tuple[bytes, bytes]:
    """(the line that ``body`` begins, with its checksums and line feed, new chain hash)."""
    trailer, chained = _trailer(body, prev)
    return body + trailer, chained


def encode_event(
    seq: int, ts: str, kind: str, actor: str, gen: int, data_json: bytes, prev: bytes
) -> tuple[bytes, bytes]:
    """(line with its line feed, new chain hash).

    ``data_json`` is one JSON object without raw line feeds, as `encode_data` makes it.
    """
    return closed(
        b'{"v":1,"seq":%d,"ts":"%b",%b"gen":%d,"data":%b' % (seq, ts.encode(), _names(kind, actor), gen, data_json),
        prev,
    )


def encode_header(segment: int, sid: str, prev: bytes, first_seq: int) -> tuple[bytes, bytes]:
    """First line of a segment; ``prev`` is the hash that ended the segment before, `GENESIS` for the first."""
    name = _encoder.encode(sid).encode()
    return closed(
        b'{"v":1,"segment":%d,"sid":%b,"prev":"%b","format":%d,"first_seq":%d'
        % (segment, name, prev.hex().encode(), FORMAT, first_seq),
        prev,
    )


def encode_footer(count: int, last_seq: int, prev: bytes) -> tuple[bytes, bytes]:
    """Last line of a sealed segment that holds ``count`` events."""
    return closed(b'{"v":1,"footer":true,"count":%d,"last_seq":%d' % (count, last_seq), prev)


def check_line(line: bytes, prev: bytes) -> bytes:
    """The chain hash after ``line`` (line feed included).

    Raises BadLine when it is torn, altered or not the next after ``prev``.
    """
    trailer, chained = _trailer(line[:-TRAILER], prev)
    if line[-TRAILER:] == trailer:
        return chained
    if line[-1:] != b"\n":
        raise BadLine("the line is torn" if len(line) <= MAX_LINE else "the line is longer than a record can be")
    if whole(line):
        raise BadLine("the line is whole but does not follow the one before it (replaced, removed or reordered)")
    raise BadLine("the line's bytes do not match its checksum")


def whole(line: bytes) -> bool:
    """True when the line is complete and its own CRC holds, whatever stands before it."""
    found = _TRAILER.fullmatch(line, max(0, len(line) - TRAILER))
    return found is not None and found[1] == b"%08x" % crc32(line[:-TRAILER])


def hash_of(line: bytes) -> bytes:
    """The chain hash a line carries. Raises BadLine when the line has none."""
    tail = line.rstrip(b"\n")
    try:
        value = bytes.fromhex(tail[-34:-2].decode("ascii"))
    except ValueError:
        value = b""
    if len(value) != 16:
        raise BadLine("the line carries no chain hash")
    return value


def is_event(line: bytes) -> bool:
    return line.startswith(_EVENT)


def is_header(line: bytes) -> bool:
    return line.startswith(_HEADER)


def is_footer(line: bytes) -> bool:
    return line.startswith(_FOOTER)


def seq_of(line: bytes) -> int:
    """The ``seq`` of an event line, or -1 when the line is no event."""
    if not line.startswith(_EVENT):
        return -1
    digits = line[13 : line.find(b",", 13, 40)]
    return int(digits) if digits.isdigit() else -1


def parse_mark(line: bytes) -> dict[str, object]:
    """Fields of a header or footer line. Raises BadLine."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as exc:
        raise BadLine(f"the line is not JSON: {exc}") from exc
    if not isinstance(value, dict):
        raise BadLine("the line is not a JSON object")
    if is_header(line) and isinstance(value.get("format"), int) and value["format"] > FORMAT:
        raise NewerLog(
            f"the log has format {value['format']}, this version knows up to {FORMAT}; use the version that wrote it,"
            " or a newer one"
        )
    return value
