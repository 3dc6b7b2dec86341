"""What every attempt at a reply of a model changes, whatever it was asked for."""

from __future__ import annotations

from harness.events import types as t
from harness.events.body import UNSETTLED
from harness.projections.state.session_state import SessionState


def replied(s: SessionState, r: t.Record, b: t.ModelMessage | t.ModelSummary) -> None:
    """Count what it cost; nothing is asked of the model any more."""
    _paid(s, r, b, b.usage)
    s.failures_in_row = 0
    s.last_failure = None
    _silent(s)


def failed(s: SessionState, r: t.Record, b: t.ModelFailed) -> None:
    """The same of an attempt without a usable reply, which may have been paid for all the same."""
    if b.price_source:
        _paid(s, r, b, b.known)
    s.failures_in_row += 1
    s.last_failure = b
    _silent(s)


def _silent(s: SessionState) -> None:
    s.request = None
    s.doing.pop("model", None)


def _paid(s: SessionState, r: t.Record, b: t.ModelMessage | t.ModelSummary | t.ModelFailed, usage: t.Usage) -> None:
    if b.price_source == UNSETTLED and s.request is not None:
        s.unsettled[s.request.reservation] = t.ModelSettled(
            request_id=b.request_id,
            reservation=s.request.reservation,
            usage=usage,
            cost_nano=b.cost_nano,
            recorded_nano=b.cost_nano,
            purpose=s.request.purpose,
        )
    s.usage += usage
    s.spent_nano += b.cost_nano
    s.burned = s.burned.paid(r.ts, b.cost_nano)
