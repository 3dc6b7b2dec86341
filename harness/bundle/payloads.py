"""Payloads beside a log: which of them its records name, and whether each is there as it was stored. Pure but for
reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.eventlog import blobs, reader
from harness.eventlog.framing import LogError
from harness.events import types
from harness.events.body import BlobRef


def named(value: object) -> Iterator[BlobRef]:
    """Every payload that a record's body names."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, BlobRef):
            yield one
        elif isinstance(one, msgspec.Struct):
            left += [getattr(one, name) for name in one.__struct_fields__]
        elif isinstance(one, (list, tuple)):
            left += one
        elif isinstance(one, dict):
            left += one.values()


def problem(folder: Path, ref: BlobRef) -> str:
    """Why a payload is not what was stored; empty when it is. Never raises."""
    try:
        size = len(blobs.get(folder, ref.sha))
    except blobs.MissingBlob:
        return "is not there"
    except (LogError, OSError, ValueError) as exc:
        return f"cannot be used: {exc}"
    return "" if size == ref.bytes else f"has {size} bytes, not {ref.bytes}"


def wrong(log: Path, folder: Path) -> Iterator[str]:
    """What is wrong with the payloads that a whole log names, a sentence each, naming the first record that names it.

    Raises LogError, OSError, msgspec.DecodeError.
    """
    seen: set[str] = set()
    for line in reader.read(log):
        record = types.decode(line)
        for ref in named(record.body):
            if ref.sha not in seen and (why := problem(folder, ref)):
                yield f"payload {ref.sha[:12]}… of record {record.seq} ({record.type}) {why}"
            seen.add(ref.sha)
