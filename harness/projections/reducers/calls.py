"""What these records change in the state: tool calls, jobs, and what takes the work back: undo, checkpoints, forks."""

from __future__ import annotations

import re

import msgspec

from harness.domain.calls.call_states import NOT_RUN
from harness.domain.states import State
from harness.events import types as t
from harness.projections.reducers.handlers import Handlers
from harness.projections.state import protected_files
from harness.projections.state.session_state import GoingOn, SessionState

HANDLERS = Handlers()
_on = HANDLERS.on


_UNDONE = "undone since it ended; no check has seen what is there now"
_CALL = re.compile(r"c(?P<seq>[0-9]{1,18})\.[0-9]{1,9}")
"""The id of a call: where the log stood when it was proposed."""


@_on(t.ToolProposed)
def _proposed(s: SessionState, r: t.Record, b: t.ToolProposed) -> None:
    s.iterations = s.iterations.proposed(b)
    s.hooks = s.hooks.proposed(b)
    if b.by_harness and b.input is not None:
        s.check_calls[b.call_id] = protected_files.RunCheck(str(b.input.get("command", "")), r.ts)
    s.before.proposed(b)


@_on(t.ToolStarted)
def _started(s: SessionState, r: t.Record, b: t.ToolStarted) -> None:
    call = s.calls.open.get(b.call_id)
    if b.call_id in s.before.runs:
        s.before.started(b)
        s.doing[b.call_id] = GoingOn("running its checks before the work", r.ts)
        return
    s.tool_calls += 1
    if b.snapshot:
        s.rules = s.rules.seen_changed(b.worked_names)
    if call is not None and s.intent is not None and s.intent.ways.hooks:
        s.hooks = s.hooks.started(call.tool, b)
    s.doing[b.call_id] = GoingOn(f"running {call.tool if call else 'a tool'}", r.ts)
    if (check := s.check_calls.get(b.call_id)) is not None:
        check.started = r.ts


@_on(t.ToolEnded)
def _tool_ended(s: SessionState, r: t.Record, b: t.ToolEnded) -> None:
    s.doing.pop(b.call_id, None)
    if b.call_id in s.before.runs:
        s.before.call_ended(b)
        return
    s.rules = s.rules.edited(b.files_changed)
    s.iterations = s.iterations.chore_ended(b.call_id, b)
    s.hooks = s.hooks.changed(b.files_changed).chore_ended(b.call_id, b)
    s.jobs.call_over(b.call_id)
    check = s.check_calls.pop(b.call_id, None)
    if check is None:
        return
    check.status = b.status
    check.exit_code = b.exit_code
    check.preview = b.preview
    check.output = b.output
    s.checks[check.command] = b.exit_code if b.exit_code is not None else -1
    if b.status not in NOT_RUN:
        s.unjudged[b.call_id] = check


@_on(t.ToolInDoubt)
def _in_doubt(s: SessionState, r: t.Record, b: t.ToolInDoubt) -> None:
    s.doing.pop(b.call_id, None)
    s.jobs.call_over(b.call_id)


@_on(t.JobStarted)
def _job_started(s: SessionState, r: t.Record, b: t.JobStarted) -> None:
    s.jobs.started(r.ts, b)
    s.hooks = s.hooks.job_started(b.job)


@_on(t.JobWaiting)
def _job_waiting(s: SessionState, r: t.Record, b: t.JobWaiting) -> None:
    s.jobs.waiting(b)
    s.doing.pop(b.call_id, None)


@_on(t.JobEnded)
def _job_ended(s: SessionState, r: t.Record, b: t.JobEnded) -> None:
    s.jobs.ended(b)
    s.hooks = s.hooks.job_ended(b.job)


@_on(t.ToolResolved)
def _resolved(s: SessionState, r: t.Record, b: t.ToolResolved) -> None:
    if b.resolution != "confirmed_not_done":
        s.before.unknown(b.call_id)
        s.check_calls.pop(b.call_id, None)
        s.iterations = s.iterations.chore_ended(b.call_id, None)
        s.hooks = s.hooks.chore_ended(b.call_id, None)


@_on(t.UndoStarted)
def _undoing(s: SessionState, r: t.Record, b: t.UndoStarted) -> None:
    if b.of_checks:
        s.doing[b.undo_id] = GoingOn("restoring what its checks wrote", r.ts)
        return
    what = f"going back to {b.call_id}" if b.call_id.startswith("k") else f"undoing {b.call_id} and what came after"
    s.doing[b.undo_id] = GoingOn(what, r.ts)


def _undone_to(s: SessionState, b: t.UndoEnded) -> int:
    """The record at which the work was as it is now; 0 when nobody can say, or not all of it was brought back."""
    if b.error or b.refused_count:
        return 0
    if (call := _CALL.fullmatch(b.call_id)) is not None:
        return int(call["seq"])
    return next((one.through_seq for one in s.checkpoints.kept if one.id == b.call_id), 0)


@_on(t.UndoEnded)
def _undone(s: SessionState, r: t.Record, b: t.UndoEnded) -> None:
    s.doing.pop(b.undo_id, None)
    s.last_undo = b.undo_id
    if b.of_checks:
        s.before.restored(b.call_id)
        return
    s.checks = dict.fromkeys(s.checks)  # what they said was said of another state
    s.verdicts.clear()
    s.passed_once.clear()
    s.judging.undone(_undone_to(s, b))
    if s.plan is not None:
        s.plan.work.undone()
    s.undone_since = s.ended is not None
    if s.ended is not None and not s.ended.reason.endswith(_UNDONE):
        before = "" if s.ended.outcome == State.DONE else f"{s.ended.reason}; "
        s.ended = s.ended.unproved(before + _UNDONE)
    if s.parked is not None and s.parked.verdict:
        s.parked = msgspec.structs.replace(s.parked, verified=False, still=False, verdict="")
