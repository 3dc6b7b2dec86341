"""One line for each record of: tool calls, jobs, and what takes the work back: undo, checkpoints, forks."""

from __future__ import annotations

from harness.domain.calls import job_words
from harness.domain.calls.call_states import CallEnd
from harness.domain.decision import Ruling
from harness.domain.text.formatting import by_whom, counted
from harness.domain.text.line import duration, first
from harness.events import types as t
from harness.events.work.commit_events import HELD_BACK
from harness.projections.state.checkpoints import words
from harness.projections.state.protected_files import some
from harness.reports.describing.line import Describers, Line, Tone
from harness.tools.summary import call_text

DESCRIBERS = Describers()
_on = DESCRIBERS.on


@_on(t.ToolProposed)
def _proposed(b: t.ToolProposed) -> Line:
    if b.before_work:
        return Line("before", f"{call_text(b.tool, b.input)} on the files before the work", "dim")
    return Line("wants", call_text(b.tool, b.input), "info")


@_on(t.ToolJudged)
def _judged(b: t.ToolJudged) -> Line:
    leaves = f" · leaves the sandbox: {', '.join(b.effects)}" if b.effects else ""
    tone: Tone = "bad" if b.verdict == Ruling.DENY else "warn"
    if b.verdict == Ruling.ALLOW and not b.effects:
        tone = "dim"
    return Line(
        b.verdict, f"{b.call_id} by rule {b.rule}" + (f": {first(b.reason)}" if b.reason else "") + leaves, tone
    )


@_on(t.ToolStarted)
def _started(b: t.ToolStarted) -> Line:
    again = f", try {b.attempt}" if b.attempt > 1 else ""
    allowed = f", allowed by decision {b.decision_id}" if b.decision_id else ""
    left_out = f", {counted(b.left_out, 'file')} too large to be kept for undo" if b.left_out else ""
    return Line("runs", f"{b.call_id} ({b.effect}){again}{allowed}{left_out}", "dim")


@_on(t.ToolEnded)
def _tool_ended(b: t.ToolEnded) -> Line:
    code = f" exit {b.exit_code}" if b.exit_code else ""
    said = first(b.preview)
    changed = f" · {counted(len(b.files_changed), 'file')} changed" if b.files_changed else ""
    cut = " · output cut" if b.truncated else ""
    limit = f" · came to the limit of {b.limit}" if b.limit else ""
    tone: Tone = "warn" if b.status in (CallEnd.OK, CallEnd.DENIED, CallEnd.CANCELLED) else "bad"
    if b.status == CallEnd.OK and not b.exit_code:
        tone = "good"
    return Line(
        "ended",
        f"{b.call_id} {b.status}{code}, {duration(b.ms)}" + (f": {said}" if said else "") + limit + changed + cut,
        tone,
    )


@_on(t.UndoStarted)
def _undoing(b: t.UndoStarted) -> Line:
    if b.of_checks:
        return Line("restores", f"{b.undo_id}: what checks wrote that ran before the work is taken back", "dim")
    when = f"at checkpoint {b.call_id}" if b.call_id.startswith("k") else f"before {b.call_id}"
    return Line("undo", f"{b.undo_id}{by_whom(b.by.client)}: the worktree becomes what it was {when}", "info")


@_on(t.UndoEnded)
def _undone(b: t.UndoEnded) -> Line:
    if b.error:
        return Line("undo", f"{b.undo_id} failed: {first(b.error)}", "bad")
    kept = f", {b.refused_count} could not be brought back: {first('; '.join(b.refused))}" if b.refused_count else ""
    return Line(
        "undo", f"{b.undo_id} done: {b.written} names restored, {b.removed} removed{kept}", "warn" if kept else "good"
    )


@_on(t.WorkCommitted)
def _committed(b: t.WorkCommitted) -> Line:
    if not b.commits:
        return Line(
            "commit", f"its branch stands at {b.head[:12]}, before at {b.before[:12]}, with no commit on top", "warn"
        )
    newest = b.commits[-1]
    rest = len(b.commits) - 1 + b.more
    return Line("commit", f"{newest.id} {first(newest.subject)}" + (f" (+{rest} before it)" if rest else ""), "good")


@_on(t.WorkHeldBack)
def _held_back(b: t.WorkHeldBack) -> Line:
    return Line("commit", f"{HELD_BACK}; taking its work brings them in: {first(b.why)}", "warn")


@_on(t.CheckpointCreated)
def _checkpoint(b: t.CheckpointCreated) -> Line:
    lacks = f", {counted(b.left_out, 'file')} too large for it" if b.left_out else ""
    return Line("checkpoint", f"{b.checkpoint_id}: {words(b.why, b.label)}{lacks}", "info")


@_on(t.CheckpointDropped)
def _checkpoint_dropped(b: t.CheckpointDropped) -> Line:
    return Line("checkpoint", f"{some(b.checkpoint_ids)} kept no longer: {b.keep} stay", "dim")


@_on(t.CheckpointRestored)
def _checkpoint_restored(b: t.CheckpointRestored) -> Line:
    return Line("checkpoint", f"the work is what it was at {b.checkpoint_id} (undo {b.undo_id})", "warn")


@_on(t.SessionForked)
def _session_forked(b: t.SessionForked) -> Line:
    return Line("fork", f"session {b.name} ({b.child}) began from checkpoint {b.checkpoint_id}", "info")


@_on(t.ToolInDoubt)
def _in_doubt(b: t.ToolInDoubt) -> Line:
    return Line("in doubt", f"{b.call_id} may or may not have happened: {first(b.why)}", "bad")


@_on(t.ToolResolved)
def _resolved(b: t.ToolResolved) -> Line:
    return Line(
        "resolved",
        f"{b.call_id} {b.resolution.replace('_', ' ')}" + (f": {first(b.evidence)}" if b.evidence else ""),
        "info",
    )


@_on(t.JobStarted)
def _job_started(b: t.JobStarted) -> Line:
    return Line("job", f"{b.job} started: {first(b.what)}", "info")


@_on(t.JobWaiting)
def _job_waiting(b: t.JobWaiting) -> Line:
    return Line("job", f"waits for {first(b.words)}", "dim")


@_on(t.JobEnded)
def _job_ended(b: t.JobEnded) -> Line:
    why = f": {first(b.note)}" if b.note else ""
    tone: Tone = "good" if b.status == CallEnd.OK else "warn"
    return Line("job", f"{b.job} {job_words.outcome(b.status, b.exit_code, b.ms)}{why}", tone)
