"""Which records of a log are wanted: since when, of which kind, the last how many. Pure."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from app.cli.since import stamp
from harness.events.types import Record

_KIND = re.compile(r"[a-z]+(\.[a-z_]+)?")


@dataclass(frozen=True, slots=True)
class Wanted:
    """``since`` is a time as records carry it, ``kinds`` are types (``tool.ended``) or what they begin with
    (``tool``); empty for all.
    """

    since: str = ""
    kinds: tuple[str, ...] = ()

    def shows(self, record: Record) -> bool:
        if record.ts < self.since:
            return False
        return not self.kinds or any(record.type == k or record.type.startswith(f"{k}.") for k in self.kinds)


def wanted(since: str | None, kinds: Iterable[str], now: datetime) -> Wanted:
    """From what was typed: ``since`` is a duration back from ``now`` (90m, 2h) or a time by ISO 8601, UTC without a
    zone. Raises ValueError with what is wrong.
    """
    types = tuple(dict.fromkeys(kinds))
    for kind in types:
        if not _KIND.fullmatch(kind):
            raise ValueError(f"--kind: {kind!r} is no kind of record such as tool, tool.ended or approval")
    return Wanted(stamp(since, now) if since is not None else "", types)


class Last:
    """Holds back all but the last ``count`` of what is there already; what comes later passes. None holds nothing."""

    def __init__(self, count: int | None) -> None:
        self._held: deque[tuple[Record, bytes]] | None = None if count is None else deque(maxlen=count)

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
