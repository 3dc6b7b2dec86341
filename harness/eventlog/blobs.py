"""Payloads too big for a record, stored once under their SHA-256. Standard library only."""

from __future__ import annotations

import errno
import re
from hashlib import sha256
from pathlib import Path

from harness.eventlog.framing import BadLine, LogError
from harness.eventlog.regular_files import opened
from harness.eventlog.writer import NoSpace
from harness.linux.durable import sync_folder, write_file

_SHA = re.compile("[0-9a-f]{64}")


class MissingBlob(LogError):
    """No payload is stored under this hash."""


class DamagedBlob(LogError):
    """What is stored under a hash does not have that hash."""


def path(folder: Path, sha: str) -> Path:
    """Where a payload lives. Raises ValueError when ``sha`` is no SHA-256 in lowercase hex."""
    if not _SHA.fullmatch(sha):
        raise ValueError(f"{sha[:80]!r} is not a SHA-256 in hex")
    return folder / sha[:2] / sha


def put(folder: Path, data: bytes) -> tuple[str, int]:
    """Store a payload and return (sha, size); it is durable under its name when this returns.

    Raises NoSpace, OSError. Putting the same bytes again changes nothing; a damaged copy is replaced.
    """
    sha = sha256(data).hexdigest()
    target = path(folder, sha)
    try:
        if not target.parent.exists():
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            sync_folder(folder)
            sync_folder(folder.parent)
        if not _same(target, data):
            write_file(target, data)
        # Also after finding it there: another writer's rename may not be on the disk yet.
        sync_folder(target.parent)
    except OSError as exc:
        if exc.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            raise NoSpace(f"payload of {len(data)} bytes cannot be stored in {folder}: {exc.strerror}") from exc
        raise
    return sha, len(data)


def get(folder: Path, sha: str) -> bytes:
    """The payload, checked against its name. Raises MissingBlob, DamagedBlob, ValueError."""
    file = path(folder, sha)
    try:
        with opened(file) as stored:
            data = stored.read()
    except FileNotFoundError as exc:
        raise MissingBlob(f"payload {sha} is not in {folder}") from exc
    except BadLine as exc:
        raise DamagedBlob(f"payload {file} is damaged: {exc}") from exc
    if sha256(data).hexdigest() != sha:
        raise DamagedBlob(f"payload {file} is damaged: its {len(data)} bytes do not have the hash of its name")
    return data


def _same(target: Path, data: bytes) -> bool:
    try:
        return target.stat().st_size == len(data) and target.read_bytes() == data
    except FileNotFoundError:
        return False
