"""What a record changes of when a session ran, waited, stood still: the state that its row shows while all processes
live.
"""

from __future__ import annotations

from harness.domain.state_span import ENDED, KEPT, OFF, Stretch, Stretches, shorten, then
from harness.domain.states import State
from harness.domain.text.formatting import parse_ts
from harness.events import types as t
from harness.projections.state.row_state import Liveness, state_of
from harness.projections.state.session_state import SessionState

_TELLING = ("session.", "lease.", "approval.", "keeper.", "time.")


def after(known: Stretches, s: SessionState, r: t.Record) -> Stretches:
    """With this record, which the state has taken but for its time."""
    if not r.type.startswith(_TELLING) or (moment := parse_ts(r.ts)) is None:
        return known
    body = r.body
    made = list(known.all)
    boot = known.boot
    if isinstance(body, t.KeeperStarted):
        before = parse_ts(s.last_ts)
        if boot and boot != body.boot and before is not None and s.ended is None:
            then(made, int(before), OFF)
        boot = body.boot
    elif isinstance(body, t.TimePassed) and body.seconds > 0 and s.ended is None:
        then(made, int(moment - body.seconds), OFF)
    if isinstance(body, t.SessionEnded):
        end = max(int(moment), made[-1].since + 1 if made else 0)
        made += [Stretch(end, body.outcome), Stretch(end + 1, ENDED)]
    elif s.ended is None:
        then(made, int(moment), _state(s))
    if len(made) > KEPT:
        shorten(made)
    return Stretches(tuple(made), boot)


def _state(s: SessionState) -> str:
    state = state_of(s, Liveness(keeper=True, brain=s.lease is not None))[0]
    return State.RUNNING if state == State.STARTING else state
