"""How fast a session spends: dollars by stretches of five minutes, over the last hour. Pure: nothing reads a clock."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from harness.domain.text.formatting import parse_ts

STEP_S = 300
KEPT = 12


class Burned(msgspec.Struct, frozen=True):
    """Nano-USD of the stretches up to number ``step`` (seconds since the epoch by `STEP_S`), the newest last."""

    step: int = 0
    nano: tuple[int, ...] = ()

    def paid(self, ts: str, nano: int) -> Burned:
        """After a reply of this price at this time of the log.

        A time that is none, or lies a little back, counts as the last one; a clock that was set back far begins anew.
        """
        moment = parse_ts(ts)
        here = self.step if moment is None else int(moment // STEP_S)
        if nano <= 0:
            return self
        if not self.nano or here < self.step - KEPT:
            return Burned(here, (nano,))
        here = max(here, self.step)
        made = [*self.nano, *[0] * min(KEPT, here - self.step)]
        made[-1] += nano
        return Burned(here, tuple(made[-KEPT:]))


def lately(step: int, nano: Sequence[int], now: float) -> list[int]:
    """The stretches of the hour up to now, `KEPT` of them, the newest last."""
    passed = max(0, int(now // STEP_S) - step)
    return [*[0] * KEPT, *nano, *[0] * min(passed, KEPT)][-KEPT:]


def per_hour(step: int, nano: Sequence[int], now: float) -> int:
    """Nano-USD an hour, as the last hour was; as what there is of it, for who began to spend within it."""
    recent = lately(step, nano, now)
    begun = next((at for at, spent in enumerate(recent) if spent), None)
    if begun is None:
        return 0
    since = KEPT - begun if len(nano) < KEPT else KEPT
    return sum(recent) * KEPT // since
