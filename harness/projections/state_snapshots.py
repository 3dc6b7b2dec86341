"""Fold snapshots: a session's state bound to (seq, chain hash), so that opening a long log reads only its end.

A snapshot is a cache: one that is missing, unreadable, of another fold or of another log is ignored, never trusted.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import msgspec

from harness.eventlog.framing import BadLine, hash_of
from harness.eventlog.index import OffsetIndex
from harness.eventlog.regular_files import opened
from harness.linux.durable import replace_file
from harness.projections.state.session_state import SessionState

EVERY = 5000
_KEEP = 2
_NAME = re.compile(r"(\d{12})\.json")


class _File(msgspec.Struct, frozen=True):
    fold: str
    seq: int
    hash: str
    state: SessionState
    version: str = ""
    more: msgspec.Raw = msgspec.Raw(b"null")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """State after the record ``seq`` whose chain hash (hex) is ``hash``; ``more`` (JSON) is what else its writer keeps
    of the log.
    """

    seq: int
    hash: str
    state: SessionState
    more: bytes = b"null"


@lru_cache(maxsize=1)
def fold_version() -> str:
    """Changes whenever the fold's code does: an older program's idea of a state is never continued."""
    rooms = Path(__file__).parents[1]
    return version_of(*(rooms / name for name in ("domain", "events", "projections")))


def version_of(*folders: Path) -> str:
    """Of all the code below these folders."""
    digest = sha256()
    for file in sorted(file for folder in folders for file in folder.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


def encode(state: SessionState, chain: str, version: str = "", more: bytes = b"null") -> bytes:
    """A snapshot as `store` takes it: a checksum line, then the state. ``version`` names the form of ``more``."""
    body = msgspec.json.encode(_File(fold_version(), state.seq, chain, state, version, msgspec.Raw(more)))
    return sha256(body).hexdigest().encode() + b"\n" + body


def store(folder: Path, seq: int, data: bytes) -> Path:
    """Write one encoded snapshot durably and drop all but the newest two; the folder's parent must exist.

    Raises OSError; then nothing has changed.
    """
    folder.mkdir(mode=0o700, exist_ok=True)
    target = folder / f"{seq:012d}.json"
    replace_file(target, data)
    for old in _names(folder)[_KEEP:]:
        old.unlink(missing_ok=True)
    return target


def _decode(data: bytes) -> _File:
    """Raises msgspec.DecodeError, also on one changed bit."""
    digest, _, body = data.partition(b"\n")
    if sha256(body).hexdigest().encode() != digest:
        raise msgspec.DecodeError("its checksum does not fit")
    return msgspec.json.decode(body, type=_File)


def load(folder: Path, log: Path, version: str = "") -> Snapshot | None:
    """The newest snapshot that belongs to this log, this fold and this ``version``, or None."""
    names = _names(folder)
    if not names:
        return None
    index = OffsetIndex(log)
    try:
        for name in names:
            try:
                with opened(name) as stored:
                    file = _decode(stored.read())
                known = (
                    file.fold == fold_version()
                    and file.version == version
                    and file.state.seq == file.seq
                    and 0 <= file.seq < len(index)
                )
                if known and hash_of(index.line(file.seq)).hex() == file.hash:
                    return Snapshot(file.seq, file.hash, file.state, bytes(file.more))
            except (OSError, msgspec.DecodeError, BadLine):
                continue
    finally:
        index.close()
    return None


def _names(folder: Path) -> list[Path]:
    try:
        found = sorted((name for name in os.listdir(folder) if _NAME.fullmatch(name)), reverse=True)
    except FileNotFoundError:
        return []
    return [folder / name for name in found]
