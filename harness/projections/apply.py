"""The one fold: events → session state. Recovery, index, TUI, CLI, briefing and metrics all read a session through it.

`advance` is total: a record it does not understand changes only the position. It never fails on a log that verified.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields

import msgspec

from harness.events import types as t
from harness.projections.reducers import approvals, calls, context, conversation, money, plan, session, state_spans
from harness.projections.state import checkpoints, contract, merging, publishing
from harness.projections.state.session_state import SessionState

_HANDLERS = {
    **session.HANDLERS.table,
    **conversation.HANDLERS.table,
    **calls.HANDLERS.table,
    **approvals.HANDLERS.table,
    **plan.HANDLERS.table,
    **context.HANDLERS.table,
    **money.HANDLERS.table,
}


def advance(s: SessionState, r: t.Record) -> None:
    """Apply one record in place."""
    s.seq = r.seq
    s.last_event = r.type
    body = r.body
    kind = r.type
    if kind.startswith(("tool.", "approval.")) and not isinstance(body, t.Unknown):
        s.calls.apply(kind, msgspec.structs.asdict(body))
    handler = _HANDLERS.get(type(body))
    if handler is not None:
        handler(s, r, body)
    s.draft.take(r.seq, body)
    s.course.take(r.seq, body, s.plan is not None)
    s.contract = contract.after(s.contract, body)
    if not (isinstance(body, t.ToolStarted) and body.call_id in s.before.runs):  # what it changes is restored
        s.checkpoints = checkpoints.after(s.checkpoints, r)
    s.stretches = state_spans.after(s.stretches, s, r)
    s.merging = merging.after(s.merging, body)
    s.pulling = publishing.after(s.pulling, body)
    s.pace = s.pace.after(r, s.spent_nano, criteria=s.plan is not None or bool(s.checks))
    s.alarms = s.alarms.after(body)
    if isinstance(body, t.Unknown):
        s.unknown += 1
    s.first_ts = s.first_ts or r.ts
    s.last_ts = r.ts


def become(s: SessionState, other: SessionState) -> None:
    """Make the one that is held elsewhere equal to another."""
    for part in fields(SessionState):
        setattr(s, part.name, getattr(other, part.name))


def fold(records: Iterable[t.Record], start: SessionState | None = None) -> SessionState:
    """State after all records; `start` continues an earlier fold."""
    state = start or SessionState()
    for record in records:
        advance(state, record)
    return state
