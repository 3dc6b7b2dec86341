"""When a session ran, waited, stood still and ended: its states by the records that changed them. Pure."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

ENDED = "ended"
"""Behind the state that it ended in, until it is continued."""
OFF = "off"
"""The machine was off, or slept."""
KEPT = 240


class Stretch(msgspec.Struct, frozen=True, array_like=True):
    """From then on, in whole seconds since the epoch, it was in this state."""

    since: int
    state: str


class Timeline(msgspec.Struct, frozen=True, kw_only=True):
    """The reply of ``timeline``: those of one session, oldest first."""

    stretches: list[Stretch]


@dataclass(frozen=True, slots=True)
class Stretches:
    """In order of time, `KEPT` of them and one at most; ``boot`` is the machine's that the newest keeper started on."""

    all: tuple[Stretch, ...] = ()
    boot: str = ""


def then(made: list[Stretch], since: int, state: str) -> None:
    """From then on it was so; a clock that was set back shortens nothing that is known."""
    since = max(since, made[-1].since) if made else since
    if made and made[-1].state == state:
        return
    if made and made[-1].since == since:
        made.pop()
        if made and made[-1].state == state:
            return
    made.append(Stretch(since, state))


def shorten(made: list[Stretch]) -> None:
    """Leave out the shortest stretch between two others, so that the whole time stays in sight; no end is left out."""
    between = [i for i in range(1, len(made) - 1) if ENDED not in (made[i].state, made[i + 1].state)]
    at = min(between, key=lambda i: made[i + 1].since - made[i].since, default=0)
    del made[at]
    if 0 < at < len(made) and made[at].state == made[at - 1].state:
        del made[at]
