"""What these records change in the state: what was said: to the model, by it, by its judge."""

from __future__ import annotations

from harness.domain import request_layers
from harness.events import types as t
from harness.events.message_parts import spelled
from harness.projections.reducers.handlers import Handlers
from harness.projections.reducers.reply import failed, replied
from harness.projections.state.session_state import GoingOn, SessionState

HANDLERS = Handlers()
_on = HANDLERS.on


@_on(t.EvaluationRequested)
def _to_judge(s: SessionState, r: t.Record, b: t.EvaluationRequested) -> None:
    s.judging.requested(r.seq, b)


@_on(t.EvaluationStarted)
def _before_the_judge(s: SessionState, r: t.Record, b: t.EvaluationStarted) -> None:
    s.judging.begun(r.seq, b)


@_on(t.EvaluationEnded)
def _from_the_judge(s: SessionState, r: t.Record, b: t.EvaluationEnded) -> None:
    s.judging.over(r.seq, b)


@_on(t.ModelRequest)
def _request(s: SessionState, r: t.Record, b: t.ModelRequest) -> None:
    s.request = b
    s.requests = s.requests + 1
    if not b.purpose:
        s.unasked = 0
    if b.working:
        s.context.working = b.working
    purpose = f" for the {b.purpose}" if b.purpose else ""
    s.doing["model"] = GoingOn(f"asking {b.model}{purpose}" + (f", try {b.attempt}" if b.attempt > 1 else ""), r.ts)


@_on(t.ModelMessage)
def _message(s: SessionState, r: t.Record, b: t.ModelMessage) -> None:
    if not b.purpose:
        s.judging.worked()
        s.context.tokens = b.context.total
        if s.request is not None:
            s.context.layers = request_layers.measured(s.request.layers, b.context.given)
    replied(s, r, b)


@_on(t.ModelFailed)
def _failed(s: SessionState, r: t.Record, b: t.ModelFailed) -> None:
    failed(s, r, b)


@_on(t.UserMessage)
def _said(s: SessionState, r: t.Record, b: t.UserMessage) -> None:
    s.jobs.told(b.jobs)
    s.unasked += spelled(b.text)
    if b.origin == "human":
        s.iterations = s.iterations.said(r.seq, b.text)
        s.judging.instructed()
