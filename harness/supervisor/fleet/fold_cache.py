"""A session's fold and track as a snapshot, so that a long log is taken up by its end alone.

A cache: one that does not fit is not used.
"""

from __future__ import annotations

from functools import lru_cache
from hashlib import sha256
from pathlib import Path

import msgspec

from harness.eventlog import reader
from harness.eventlog.framing import hash_of
from harness.events import types as t
from harness.projections import state_snapshots
from harness.projections.apply import advance
from harness.projections.salvage import Salvage
from harness.projections.state.session_state import SessionState
from harness.protocol.paths import SessionFolder
from harness.supervisor.fleet import call_records
from harness.supervisor.fleet.call_records import Track

WORTH_KEEPING = 500
"""Fewer new records than this are read faster than a snapshot is written."""


@lru_cache(maxsize=1)
def _version() -> str:
    return sha256(Path(str(call_records.__file__)).read_bytes()).hexdigest()[:16]


def encode(state: SessionState, track: Track, last: bytes) -> bytes:
    """Both at the record whose line is ``last``, ready for `snapshots.store`. Raises BadLine."""
    return state_snapshots.encode(state, hash_of(last).hex(), _version(), msgspec.json.encode(track))


def recall(folder: SessionFolder) -> tuple[SessionState, Track, bytes, int]:
    """(state, track, last line, seq of the snapshot it began with or -1), read from disk.

    Blocking. Raises LogError, DecodeError, OSError.
    """
    state = SessionState()
    track = Track()
    start = -1
    known = state_snapshots.load(folder.snapshots, folder.log, _version())
    if known is not None:
        try:
            track = msgspec.json.decode(known.more, type=Track)
        except msgspec.DecodeError:
            known = None  # of another form than its version says: read the whole log
    if known is not None:
        state = known.state
        start = known.seq
    last = b""
    for line in reader.read(folder.log, start):
        record = t.decode(line)
        track.note(state, record)
        advance(state, record)
        last = line
    return state, track, last, start


def salvage(folder: SessionFolder) -> tuple[SessionState, Track]:
    """Fold and track of a damaged log as far as it goes. Blocking."""
    state = SessionState()
    track = Track()
    for record in Salvage(folder.log):
        track.note(state, record)
        advance(state, record)
    return state, track
