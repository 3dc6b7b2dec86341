"""How fast money goes, from totals seen while somebody looks. Pure: the caller says what time it is."""

from __future__ import annotations

from collections.abc import Sequence

_MINUTE_S = 60
_MOST = 10
_SPARKS = "▁▂▃▄▅▆▇█"


class Burn:
    """Spend by the minute. A total that falls begins anew, as it does at midnight."""

    __slots__ = ("_first", "_last", "_spent")

    def __init__(self) -> None:
        self._first: float | None = None
        self._last = 0
        self._spent: dict[int, int] = {}

    def note(self, total_nano: int, now: float) -> None:
        """The total is this much now."""
        if self._first is None:
            self._first = now
        else:
            minute = int(now // _MINUTE_S)
            self._spent[minute] = self._spent.get(minute, 0) + max(0, total_nano - self._last)
            for old in [m for m in self._spent if m <= minute - _MOST]:
                del self._spent[old]
        self._last = total_nano

    def per_hour(self, now: float) -> int | None:
        """Nano-USD an hour, over the last ten minutes at most; None before a minute was seen."""
        if self._first is None or now - self._first < _MINUTE_S:
            return None
        begin = max(self._first, (now // _MINUTE_S - _MOST + 1) * _MINUTE_S)
        return int(sum(self._by_minute(now)) * 3600 / max(_MINUTE_S, now - begin))

    def spark(self, now: float, width: int = 5) -> str:
        """The last minutes as bars, the highest of them full; empty while nothing was spent."""
        return bars(self._by_minute(now)[-width:])

    def _by_minute(self, now: float) -> list[int]:
        here = int(now // _MINUTE_S)
        return [self._spent.get(minute, 0) for minute in range(here - _MOST + 1, here + 1)]


def bars(amounts: Sequence[int]) -> str:
    """Amounts as bars, the highest of them full; empty while all are nothing."""
    most = max(amounts, default=0)
    if most <= 0:
        return ""
    return "".join(_SPARKS[amount * (len(_SPARKS) - 1) // most] for amount in amounts)
