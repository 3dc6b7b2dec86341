"""What a damaged log still says: its records up to the damage, and where that is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import msgspec

from harness.events import types as t
from harness.events.fold import advance
from harness.events.framing import GENESIS, LogError
from harness.events.reader import Scan, segment_name, segments
from harness.events.session_state import SessionState


class Salvage:
    """Iterates over the good records from the first on; then ``problem`` is empty, or says what stands in the way of
    the rest.
    """

    def __init__(self, log: Path) -> None:
        self._log = log
        self.problem = ""

    def __iter__(self) -> Iterator[t.Record]:
        try:
            yield from self._records()
            segments(self._log)
        except (LogError, msgspec.DecodeError, OSError) as exc:
            self.problem = str(exc)

    def _records(self) -> Iterator[t.Record]:
        number = 1
        chain = GENESIS
        head = -1
        sid = ""
        while os.path.lexists(path := self._log / segment_name(number)):
            scan = Scan(path, number, chain, head, sid)
            for line in scan.events(not os.path.lexists(self._log / segment_name(number + 1))):
                yield t.decode(line[:-1])
            if scan.bad:
                raise scan.damage()
            if not scan.sealed:
                return
            number = number + 1
            chain = scan.chain
            head = scan.head
            sid = scan.sid


def salvage(log: Path) -> tuple[SessionState, str]:
    """(the fold of what can be read, what is wrong with the rest or nothing)."""
    records = Salvage(log)
    state = SessionState()
    for record in records:
        advance(state, record)
    return state, records.problem
