"""Pieces of a session's log and payloads for clients that do not see our disk. Nothing here waits or writes."""

from __future__ import annotations

import base64
from collections.abc import Mapping

from harness.eventlog import blobs
from harness.eventlog.framing import LogError, seq_of, whole
from harness.eventlog.index import OffsetIndex
from harness.protocol import locks
from harness.protocol.paths import SessionFolder
from harness.supervisor.base.errors import OpError
from harness.views.replies import LogPiece, PayloadPiece

MOST_BYTES = 1 << 20
"""Of one piece, before it is JSON; a single record may go beyond."""


def bounded(message: Mapping[str, object], name: str, default: int, low: int, high: int | None = None) -> int:
    """A whole number from ``low`` on, cut to ``high``. Raises OpError ``bad_request`` for any other."""
    value = message.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int) or value < low:
        raise OpError("bad_request", f"{name} must be a whole number from {low}")
    return value if high is None else min(value, high)


def lines(folder: SessionFolder, from_seq: int, most_bytes: int) -> LogPiece:
    """Raw records from ``from_seq`` on, at least one when there is one.

    Raises OpError ``gone``, and ``damaged`` when the first record wanted is.
    """
    closed = not locks.held(folder.lock)  # before the log is looked at, so that nothing is written after what is read
    _must_be(folder)
    try:
        index = OffsetIndex(folder.log)
        try:
            found, _ = index.scan(from_seq, most_bytes)
            head = len(index) - 1
        finally:
            index.close()
    except LogError as exc:
        raise OpError("damaged", str(exc)) from exc
    out: list[str] = []
    for line in found:
        text = _text(line) if seq_of(line) == from_seq + len(out) else None
        if text is None:
            break
        out.append(text)
    if not out and from_seq <= head:
        raise OpError("damaged", f"record {from_seq} of this log is damaged", "see: watchfloor verify")
    return LogPiece(lines=out, next=from_seq + len(out), head=head, closed=closed)


def blob(folder: SessionFolder, sha: str, offset: int, most: int) -> PayloadPiece:
    """A piece of a payload, the whole of which fits its name.

    Raises OpError ``bad_request`` (no SHA-256), ``not_found``, ``damaged``, ``gone``.
    """
    _must_be(folder)
    try:
        whole_of_it = blobs.get(folder.blobs, sha)
    except ValueError as exc:
        raise OpError("bad_request", str(exc)) from exc
    except blobs.MissingBlob as exc:
        raise OpError("not_found", f"no payload {sha} is kept of this session") from exc
    except blobs.DamagedBlob as exc:
        raise OpError("damaged", str(exc)) from exc
    piece = base64.b64encode(whole_of_it[offset : offset + most]).decode("ascii")
    return PayloadPiece(data=piece, offset=offset, bytes=len(whole_of_it))


def _must_be(folder: SessionFolder) -> None:
    if not folder.root.is_dir():
        raise OpError("gone", "this session's folder is not there any more")


def _text(line: bytes) -> str | None:
    """A sound record as text; None for one that is damaged."""
    if not whole(line + b"\n"):
        return None
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return None
