"""Where a session's records come from: the disk when it is ours to read, else the supervisor.

The disk comes first because it asks nobody, and slows nobody (decision 007).
"""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Protocol

from app.client.replies import ask
from harness.eventlog import blobs
from harness.eventlog.tail import Tail
from harness.protocol import locks
from harness.protocol.client import Client, SupervisorError
from harness.protocol.connection.transport import Transport
from harness.protocol.paths import SessionFolder
from harness.views.replies import LogPiece, PayloadPiece

_PIECE_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Piece:
    """The next raw records, without line feeds; ``more`` can be read at once.

    ``closed``: nobody wrote the log when it was read. ``gone``: the session was removed.
    """

    lines: list[bytes]
    more: bool
    closed: bool
    gone: bool


class RecordSource(Protocol):
    """The log and the payloads of one session."""

    def read(self) -> Piece:
        """What follows the last piece, in bounded bytes. Raises LogError, SupervisorError, Unreachable."""

    def payload(self, sha: str) -> bytes:
        """The payload of this SHA-256, checked. Raises LogError, SupervisorError, Unreachable."""


class DiskRecords:
    """Read from the session's folder; every line is verified against the chain."""

    def __init__(self, folder: SessionFolder, after: int) -> None:
        self._folder = folder
        self._tail = Tail(folder.log, after=after)

    def read(self) -> Piece:
        closed = not locks.held(self._folder.lock)  # looked at before the log is, so that nothing comes after it
        lines = self._tail.poll(_PIECE_BYTES)
        return Piece(lines, self._tail.waiting, closed, not self._folder.root.exists())

    def payload(self, sha: str) -> bytes:
        return blobs.get(self._folder.blobs, sha)


class AskedRecords:
    """Asked of the supervisor, over whatever leads to it."""

    def __init__(self, client: Client, sid: str, after: int) -> None:
        self._client = client
        self._sid = sid
        self._next = after + 1

    def read(self) -> Piece:
        try:
            piece = ask(self._client, LogPiece, "read", sid=self._sid, from_seq=self._next, most_bytes=_PIECE_BYTES)
        except SupervisorError as exc:
            if exc.code not in ("gone", "not_found"):
                raise
            return Piece([], False, True, True)
        self._next = piece.next
        return Piece([line.encode() for line in piece.lines], piece.next <= piece.head, piece.closed, False)

    def payload(self, sha: str) -> bytes:
        data = bytearray()
        while True:
            part = ask(self._client, PayloadPiece, "blob", sid=self._sid, sha=sha, offset=len(data), most=_PIECE_BYTES)
            piece = base64.b64decode(part.data)
            data += piece
            if not piece or len(data) >= part.bytes:
                break
        if sha256(data).hexdigest() != sha:
            raise blobs.DamagedBlob(f"payload {sha} came damaged: its bytes do not have the hash of its name")
        return bytes(data)


def readable(transport: Transport, folder: Path) -> bool:
    """True when a session's folder can be read without asking anybody; ``transport`` leads to its supervisor."""
    return transport.local and os.access(folder, os.R_OK | os.X_OK)
