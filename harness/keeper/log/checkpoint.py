"""What a keeper knows of its own log, kept beside it now and then, so that the next keeper reads only what came after.
Standard library only.

A cache, bound to one record (place, number, chain hash), to the code that folds and to its own checksum: whatever does
not fit is ignored and the log is read whole. It is not synced, since losing it costs time and never a record.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from harness.domain.calls import call_lifecycle
from harness.eventlog import head_marker, reader
from harness.eventlog.framing import BadLine
from harness.eventlog.reader import Place, stands
from harness.eventlog.regular_files import opened
from harness.keeper.log import state as keeper_fold
from harness.keeper.log.state import KeeperState
from harness.linux import durable

FILE = "keeper.json"
EVERY_BYTES = 4 * 1024 * 1024
"""Bytes of log that a keeper may have to read at its start, about."""
_LARGEST = 16 * 1024 * 1024


def _form() -> str:
    """Changes whenever the code does that folds, or that says where; taken when that code is loaded."""
    digest = sha256()
    for file in (keeper_fold.__file__, call_lifecycle.__file__, reader.__file__, __file__):
        digest.update(Path(str(file)).read_bytes())
    return digest.hexdigest()[:16]


FORM = _form()


@dataclass(frozen=True, slots=True)
class LogCheckpoint:
    """The fold of a log up to and with the record at ``place``."""

    place: Place
    state: KeeperState


def encode(found: LogCheckpoint) -> bytes:
    """A checksum line, then the rest."""
    where = asdict(found.place) | {"hash": found.place.hash.hex()}
    body = json.dumps({"form": FORM, "place": where, "state": found.state.to_wire()}).encode()
    return sha256(body).hexdigest().encode() + b"\n" + body


def decode(data: bytes) -> LogCheckpoint | None:
    """What `encode` made with this very code, or None."""
    digest, _, body = data.partition(b"\n")
    if sha256(body).hexdigest().encode() != digest:
        return None
    value: dict[str, Any] = json.loads(body)
    if value["form"] != FORM:
        return None
    where = value["place"]
    return LogCheckpoint(
        Place(**{**where, "hash": bytes.fromhex(where["hash"])}), keeper_fold.from_wire(value["state"])
    )


def load(root: Path, log: Path) -> LogCheckpoint | None:
    """The checkpoint in the session's folder ``root``, if it belongs to this log and to this code."""
    try:
        with opened(root / FILE) as file:
            found = decode(file.read(_LARGEST))
        if found is None or not stands(log, found.place):
            return None
        known = head_marker.load(log)
    except (OSError, BadLine):
        return None
    at = found.place
    return None if known is not None and known.seq == at.seq and known.hash != at.hash else found


def store(root: Path, found: LogCheckpoint) -> None:
    """Replace the checkpoint; a disk that refuses only makes the next start read more."""
    with contextlib.suppress(OSError):
        durable.swap_file(root / FILE, encode(found))


def drop(root: Path) -> None:
    """Let the next keeper read its log whole. Raises OSError."""
    (root / FILE).unlink(missing_ok=True)
