"""Which records of a log are wanted: since when, of which kind, the last how many. Pure."""

from __future__ import annotations

import sys
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from app.cli.base.since import stamp
from harness.events.types import TYPES, Record
from harness.reports.describe import WORDS, describe


@dataclass(frozen=True, slots=True)
class Wanted:
    """``since`` is a time as records carry it, ``kinds`` are types (``tool.ended``), what they begin with (``tool``) or
    words that `describe` begins a line with (``says``); empty for all.
    """

    since: str = ""
    kinds: tuple[str, ...] = ()

    def shows(self, record: Record) -> bool:
        if record.ts < self.since:
            return False
        if not self.kinds or any(_fits(record.type, kind) for kind in self.kinds):
            return True
        return not WORDS.isdisjoint(self.kinds) and describe(record).kind in self.kinds


def wanted(since: str | None, kinds: Iterable[str], now: datetime) -> Wanted:
    """From what was typed: ``since`` is a duration back from ``now`` (90m, 2h) or a time by ISO 8601, on this machine's
    clock without a zone. Raises ValueError with what is wrong.
    """
    wished = tuple(dict.fromkeys(kinds))
    for kind in wished:
        if kind not in WORDS and not any(_fits(name, kind) for name in TYPES):
            known = ", ".join(sorted({name.partition(".")[0] for name in TYPES}))
            raise ValueError(
                f"--kind: {kind!r} is no kind of record; known: {known}; one of each, as tool.ended; and what the log"
                f" shows: {', '.join(sorted(WORDS))}"
            )
    return Wanted(stamp(since, now) if since is not None else "", wished)


def _fits(name: str, kind: str) -> bool:
    return name == kind or name.startswith(f"{kind}.")


class Last:
    """Holds back all but the last ``count`` of what is there already; what comes later passes. None holds nothing."""

    def __init__(self, count: int | None) -> None:
        held = None if count is None else deque[tuple[Record, bytes]](maxlen=min(count, sys.maxsize))
        self._held: deque[tuple[Record, bytes]] | None = held

    def pass_on(self, record: Record, line: bytes) -> Iterator[tuple[Record, bytes]]:
        if self._held is None:
            yield record, line
        else:
            self._held.append((record, line))

    def caught_up(self) -> Iterator[tuple[Record, bytes]]:
        """The end of what was there is reached."""
        held = self._held or ()
        self._held = None
        yield from held
