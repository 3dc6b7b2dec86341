"""What these records change in the state: caps, allowances and breakers."""

from __future__ import annotations

from harness.domain.cap import Cap
from harness.events import types as t
from harness.projections.reducers.handlers import Handlers
from harness.projections.state.session_state import SessionState

HANDLERS = Handlers()
_on = HANDLERS.on


@_on(t.BudgetReached)
def _budget(s: SessionState, r: t.Record, b: t.BudgetReached) -> None:
    s.budget = b
    if b.cap == Cap.SESSION_USD:
        s.unasked = 0


@_on(t.CapsRaised)
def _raised(s: SessionState, r: t.Record, b: t.CapsRaised) -> None:
    s.caps = b.caps
    s.finish_up = None  # to go on is another answer than to finish up, and its allowance is not on top of the new cap
    s.budget = None


@_on(t.FinishUp)
def _finish(s: SessionState, r: t.Record, b: t.FinishUp) -> None:
    s.finish_up = b
    s.budget = None


@_on(t.ModelSettled)
def _settled(s: SessionState, r: t.Record, b: t.ModelSettled) -> None:
    if s.unsettled.pop(b.reservation, None) is not None:
        s.spent_nano += b.more_nano
