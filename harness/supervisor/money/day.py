"""The day that money counts for."""

from __future__ import annotations

import time
from datetime import UTC, datetime

_JUMP_S = 3600.0
_DAY_S = 86400.0


class Clock:
    """Today's date by a clock that a jump of the wall clock does not move: a jump over an hour keeps the old day until
    restart.
    """

    def __init__(self) -> None:
        self._wall = time.time()
        self._boot = time.clock_gettime(time.CLOCK_BOOTTIME)
        self.jumped = False

    def _now(self) -> float:
        wall = time.time()
        expected = self._wall + time.clock_gettime(time.CLOCK_BOOTTIME) - self._boot
        self.jumped = abs(wall - expected) > _JUMP_S
        return expected if self.jumped else wall

    def today(self) -> str:
        """``YYYY-MM-DD`` in UTC."""
        return datetime.fromtimestamp(self._now(), UTC).strftime("%Y-%m-%d")

    def to_next_day(self) -> float:
        """Seconds until `today` changes."""
        return _DAY_S - self._now() % _DAY_S
