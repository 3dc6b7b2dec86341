"""When a session ran, waited, stood still and ended: its states by the records that changed them. Pure.

Built record by record in the one fold, with the state that a row shows while all processes live.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from harness.events import types as t
from harness.events.views import Liveness, state_of
from harness.events.words import parse_ts

if TYPE_CHECKING:
    from harness.events.session_state import SessionState

ENDED = "ended"
"""Behind the state that it ended in, until it is continued."""
OFF = "off"
"""The machine was off, or slept."""
KEPT = 240
_TELLING = ("session.", "lease.", "approval.", "keeper.", "time.")


class Stretch(msgspec.Struct, frozen=True, array_like=True):
    """From then on, in whole seconds since the epoch, it was in this state."""

    since: int
    state: str


@dataclass(frozen=True, slots=True)
class Stretches:
    """In order of time, `KEPT` of them and one at most; ``boot`` is the machine's that the newest keeper started on."""

    all: tuple[Stretch, ...] = ()
    boot: str = ""


def after(known: Stretches, s: SessionState, r: t.Record) -> Stretches:
    """With this record, which the state has taken but for its time."""
    moment = parse_ts(r.ts)
    body = r.body
    if not r.type.startswith(_TELLING) or moment is None:
        return known
    made = list(known.all)
    boot = known.boot
    if isinstance(body, t.KeeperStarted):
        before = parse_ts(s.last_ts)
        if boot and boot != body.boot and before is not None and s.ended is None:
            _then(made, int(before), OFF)
        boot = body.boot
    elif isinstance(body, t.TimePassed) and body.seconds > 0 and s.ended is None:
        _then(made, int(moment - body.seconds), OFF)
    if isinstance(body, t.SessionEnded):
        end = max(int(moment), made[-1].since + 1 if made else 0)
        made += [Stretch(end, body.outcome), Stretch(end + 1, ENDED)]
    elif s.ended is None:
        _then(made, int(moment), _state(s))
    if len(made) > KEPT:
        _shorten(made)
    return Stretches(tuple(made), boot)


def _state(s: SessionState) -> str:
    state = state_of(s, Liveness(keeper=True, brain=s.lease is not None))[0]
    return "running" if state == "starting" else state


def _then(made: list[Stretch], since: int, state: str) -> None:
    """From then on it was so; a clock that was set back shortens nothing that is known."""
    since = max(since, made[-1].since) if made else since
    if made and made[-1].state == state:
        return
    if made and made[-1].since == since:
        made.pop()
        if made and made[-1].state == state:
            return
    made.append(Stretch(since, state))


def _shorten(made: list[Stretch]) -> None:
    """Leave out the shortest stretch between two others, so that the whole time stays in sight; no end is left out."""
    between = [i for i in range(1, len(made) - 1) if ENDED not in (made[i].state, made[i + 1].state)]
    at = min(between, key=lambda i: made[i + 1].since - made[i].since, default=0)
    del made[at]
    if 0 < at < len(made) and made[at].state == made[at - 1].state:
        del made[at]
