"""What a damaged log still says: its records up to the damage, and where that is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.eventlog.framing import LogError
from harness.eventlog.reader import segments, walk
from harness.events import types as t
from harness.projections.apply import advance
from harness.projections.state.session_state import SessionState


class Salvage:
    """Iterates over the good records from the first on; then ``problem`` is empty, or says what stands in the way of
    the rest.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self.problem = ""

    def __iter__(self) -> Iterator[t.Record]:
        try:
            for _, line in walk(self._log):
                yield t.decode(line)
            segments(self._log)
        except (LogError, msgspec.DecodeError, OSError) as exc:
            self.problem = str(exc)


def salvage(log: Path) -> tuple[SessionState, str]:
    """(the fold of what can be read, what is wrong with the rest or nothing)."""
    records = Salvage(log)
    state = SessionState()
    for record in records:
        advance(state, record)
    return state, records.problem
