"""One line, and the whole, of any record in words for a person: panes, `logs` and the briefing say the same.

The text is raw: it quotes what agents said, so whoever shows it passes `untrusted.to_display`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Literal, TypeVar

import msgspec

from harness.events import job_words, memory_words, said
from harness.events import types as t
from harness.events.cap import OF_SESSION, amount_of
from harness.events.checkpoints import words
from harness.events.ratchet import ALLOW, some, told_of
from harness.events.words import usd

Tone = Literal["info", "good", "warn", "bad", "dim"]
GROUPS = ("talk", "tools", "approvals", "session", "money", "trouble")
_QUOTE = 400


class Line(msgspec.Struct, frozen=True):
    """``kind`` is a short word for the column, ``summary`` one line of raw text, ``tone`` how it should stand out."""

    kind: str
    summary: str
    tone: Tone


def group_of(kind: str) -> str:
    """The filter group (one of `GROUPS`) of an event type's log name."""
    if kind in (
        "ratchet.violation",
        "plan.restored",
        "model.failed",
        "tool.in_doubt",
        "log.recovered",
        "session.quarantined",
        "breaker.opened",
        "harness.note",
    ):
        return "trouble"
    if kind in ("model.message", "model.request", "user.message") or kind.startswith("evaluation."):
        return "talk"
    head = kind.partition(".")[0]
    return {
        "tool": "tools",
        "check": "tools",
        "job": "tools",
        "approval": "approvals",
        "budget": "money",
        "caps": "money",
        "ledger": "money",
    }.get(head, "session")


def describe(record: t.Record) -> Line:
    """One line for any record, unknown types included. Never fails."""
    describer = _DESCRIBERS.get(type(record.body))
    if describer is None:
        body = record.body
        data = body.data if isinstance(body, t.Unknown) else msgspec.to_builtins(body)
        return Line(record.type, _compact(data), "dim")
    return describer(record.body)


def detail(record: t.Record) -> str:
    """The whole record as text of several lines: who and when, the one-line summary, then every field; raw."""
    line = describe(record)
    body = record.body
    data = body.data if isinstance(body, t.Unknown) else msgspec.to_builtins(body)
    head = [
        f"record {record.seq}  {record.ts}  {record.type}",
        f"by {record.actor}" + (f", lease {record.gen}" if record.gen else ""),
        "",
        line.summary,
        "",
    ]
    return "\n".join(head + _fields(data, ""))


B = TypeVar("B", bound=t.Body)
_DESCRIBERS: dict[type[t.Body], Callable[[Any], Line]] = {}


def _on(cls: type[B]) -> Callable[[Callable[[B], Line]], Callable[[B], Line]]:
    def register(fn: Callable[[B], Line]) -> Callable[[B], Line]:
        _DESCRIBERS[cls] = fn
        return fn

    return register


def _first(text: str) -> str:
    """The first line that says something, cut to a bounded length."""
    for line in text.split("\n"):
        if line.strip():
            more = len(text) > len(line.rstrip()) + 1
            return line.strip()[:_QUOTE] + (" …" if more or len(line) > _QUOTE else "")
    return ""


def _compact(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(", ", ": "), default=str)
    return text if len(text) <= _QUOTE else text[:_QUOTE] + " …"


def _fields(value: Any, indent: str) -> list[str]:
    out: list[str] = []
    items = value.items() if isinstance(value, dict) else ((f"[{i}]", item) for i, item in enumerate(value))
    for name, item in items:
        if isinstance(item, (dict, list)) and item:
            out += [f"{indent}{name}:", *_fields(item, indent + "  ")]
        elif isinstance(item, str) and "\n" in item:
            out += [f"{indent}{name}:", *(f"{indent}  | {line}" for line in item.split("\n"))]
        else:
            out.append(f"{indent}{name}: {item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)}")
    return out


def _duration(ms: int) -> str:
    return f"{ms} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


def _size(count: int) -> str:
    if count < 1024:
        return f"{count} B"
    return f"{count / 1024:.1f} KiB" if count < 1024 * 1024 else f"{count / 1024 / 1024:.1f} MiB"


def _caps(caps: t.Caps) -> str:
    held = ((cap, getattr(caps, cap.field)) for cap in OF_SESSION)
    return ", ".join(cap.words(value) for cap, value in held if value is not None) or "none"


def call_text(tool: str, data: dict[str, Any] | None) -> str:
    """A tool call as a person would write it; ``data`` is the tool's input."""
    if data is None:
        return f"{tool} (large input)"
    argv = data.get("argv")
    if isinstance(argv, list):
        return f"{tool}: " + " ".join(str(part) if part and " " not in str(part) else repr(str(part)) for part in argv)
    for key in ("script", "command"):
        if key in data:
            return f"{tool}: {_first(str(data[key]))}"
    if "pattern" in data:
        return f"{tool}: {data['pattern']!s}" + (f" in {data['path']}" if data.get("path") else "")
    if "call" in data:
        return f"{tool}: {data['call']!s}" + (f" matching {data['grep']!s}" if data.get("grep") else "")
    if "path" in data:
        extra = f" ({_size(len(str(data['content']).encode('utf-8', 'replace')))})" if "content" in data else ""
        return f"{tool}: {data['path']}{extra}"
    return f"{tool} {_compact(data)}" if data else tool


# -- session ---------------------------------------------------------------------------------------


@_on(t.SessionIntent)
def _intent(b: t.SessionIntent) -> Line:
    return Line("launch", f"{b.name}: {_first(b.goal)} · {b.model} · caps: {_caps(b.caps)}", "info")


@_on(t.SessionCreated)
def _created(b: t.SessionCreated) -> Line:
    dirty = f"; {b.dirty} uncommitted changes in the repository were left out" if b.dirty else ""
    return Line(
        "worktree", f"branch {b.branch} from {b.base[:12]} in {b.worktree}{dirty}", "warn" if b.dirty else "info"
    )


@_on(t.SessionDesired)
def _desired(b: t.SessionDesired) -> Line:
    who = f" by {b.by.client}" if b.by.client else ""
    return Line("wish", f"{b.state}{who}" + (f": {_first(b.reason)}" if b.reason else ""), "info")


@_on(t.SessionParked)
def _parked(b: t.SessionParked) -> Line:
    until = f" until {b.until}" if b.until else ""
    return Line(
        "parked",
        f"{b.why}{until}" + (f": {_first(b.detail)}" if b.detail else ""),
        "bad" if b.why in ("auth", "error") else "warn",
    )


@_on(t.SessionEnded)
def _ended(b: t.SessionEnded) -> Line:
    verified = ", not verified" if b.outcome == "done" else ""
    tone: Tone = "bad" if b.outcome == "failed" else "warn"
    if b.verified:
        verified = ", all checks passed"
        tone = "good" if b.outcome == "done" else tone
    text = _first(b.reason or b.summary)
    return Line(b.outcome, f"{b.outcome}{verified}" + (f": {text}" if text else ""), tone)


@_on(t.SessionContinued)
def _continued(b: t.SessionContinued) -> Line:
    parts = [f"by {b.by.client}"] if b.by.client else []
    parts += [f"{b.rounds} rounds"] if b.rounds else []
    parts += [f"caps: {_caps(b.caps)}"] if b.caps is not None else []
    parts += [f"checks: {_first('; '.join(b.checks)) or 'none'}"] if b.checks is not None else []
    return Line("goes on", "continued" + (f" {' · '.join(parts)}" if parts else ""), "info")


@_on(t.LeaseGranted)
def _lease(b: t.LeaseGranted) -> Line:
    return Line("brain", f"brain {b.gen} started" + (f", pid {b.pid}" if b.pid else ""), "dim")


@_on(t.LeaseEnded)
def _lease_ended(b: t.LeaseEnded) -> Line:
    code = f", exit code {b.exit_code}" if b.exit_code is not None else ""
    return Line("brain", f"brain {b.gen} left: {_first(b.reason)}{code}", "warn" if b.exit_code else "dim")


@_on(t.KeeperStarted)
def _keeper(b: t.KeeperStarted) -> Line:
    return Line(
        "keeper",
        f"keeper started, pid {b.pid}" + (", after a recovery" if b.recovered else ""),
        "warn" if b.recovered else "dim",
    )


@_on(t.LogRecovered)
def _recovered(b: t.LogRecovered) -> Line:
    return Line(
        "recovered", f"an unfinished write of {_size(b.bytes)} at byte {b.at} was cut; kept in {b.file}", "warn"
    )


@_on(t.Quarantined)
def _quarantined(b: t.Quarantined) -> Line:
    return Line("stopped", f"{b.part} failed {b.restarts} times, waiting for you: {_first(b.reason)}", "bad")


# -- conversation ----------------------------------------------------------------------------------


@_on(t.UserMessage)
def _user(b: t.UserMessage) -> Line:
    kind = {"goal": "goal", "human": "you", "harness": "harness"}.get(b.origin, b.origin)
    return Line(kind, _first(b.text), "info")


@_on(t.ModelRequest)
def _request(b: t.ModelRequest) -> Line:
    attempt = f", try {b.attempt}" if b.attempt > 1 else ""
    who = f"the {b.purpose}: " if b.purpose else ""
    return Line(
        "ask",
        f"{who}{b.model}{attempt}, about {b.est_input:,} tokens in, at most {usd(b.reserved_nano)} reserved",
        "dim",
    )


@_on(t.ModelMessage)
def _message(b: t.ModelMessage) -> Line:
    prose = _first(said.text_of(b.parts or ()))
    calls = len(said.calls_of(b.parts or ()))
    what = prose or (f"{calls} tool call{'s' if calls != 1 else ''}" if calls else f"({b.stop})")
    stop = "" if b.stop in (said.DONE, said.CALLS) else f" [{b.stop}]"
    return Line(
        "judge" if b.purpose else "says",
        f"{what}{stop} · {b.usage.output:,} out · {usd(b.cost_nano)}",
        "warn" if stop else "info",
    )


@_on(t.ModelFailed)
def _failed(b: t.ModelFailed) -> Line:
    retry = f", again in {b.retry_in_s:.0f} s" if b.retry_in_s is not None else ""
    status = f" {b.status}" if b.status else ""
    return Line(
        "no reply", f"{b.kind}{status}: {_first(b.message)}{retry}", "warn" if b.retry_in_s is not None else "bad"
    )


@_on(t.EvaluationRequested)
def _to_judge(b: t.EvaluationRequested) -> Line:
    return Line("judge", f"the work is said to be done; the judge is to look at it (cycle {b.cycle})", "dim")


@_on(t.EvaluationStarted)
def _before_the_judge(b: t.EvaluationStarted) -> Line:
    what = f"{len(b.criteria)} criteria in {_size(b.case.bytes)}"
    return Line("judge", f"{b.model} judges as {b.role}, cycle {b.cycle} of {b.cycles}: {what}", "dim")


@_on(t.EvaluationEnded)
def _from_the_judge(b: t.EvaluationEnded) -> Line:
    failing = [f"{one.criterion}: {_first(one.reason)}" for one in b.findings if not one.holds]
    words = [*failing, *([f"drift: {_first(b.drift)}"] if b.drift else []), _first(b.summary)]
    said_of = "; ".join(filter(None, words))[:_QUOTE]
    tones: dict[str, Tone] = {"satisfied": "good", "needs_revision": "warn"}
    return Line(
        "judge",
        f"{b.verdict.replace('_', ' ')} (cycle {b.cycle} of {b.cycles}): {said_of} · {usd(b.cost_nano)}",
        tones.get(b.verdict, "bad"),
    )


# -- tools -----------------------------------------------------------------------------------------


@_on(t.ToolProposed)
def _proposed(b: t.ToolProposed) -> Line:
    return Line("wants", call_text(b.tool, b.input), "info")


@_on(t.ToolJudged)
def _judged(b: t.ToolJudged) -> Line:
    leaves = f" · leaves the fence: {', '.join(b.effects)}" if b.effects else ""
    tone: Tone = "bad" if b.verdict == "deny" else "warn"
    if b.verdict == "allow" and not b.effects:
        tone = "dim"
    return Line(
        b.verdict, f"{b.call_id} by rule {b.rule}" + (f": {_first(b.reason)}" if b.reason else "") + leaves, tone
    )


@_on(t.ToolStarted)
def _started(b: t.ToolStarted) -> Line:
    again = f", try {b.attempt}" if b.attempt > 1 else ""
    allowed = f", allowed by decision {b.decision_id}" if b.decision_id else ""
    left_out = f", {b.left_out} files too large to be kept for undo" if b.left_out else ""
    return Line("runs", f"{b.call_id} ({b.effect}){again}{allowed}{left_out}", "dim")


@_on(t.ToolEnded)
def _tool_ended(b: t.ToolEnded) -> Line:
    code = f" exit {b.exit_code}" if b.exit_code else ""
    first = _first(b.preview)
    changed = (
        f" · {len(b.files_changed)} file{'s' if len(b.files_changed) != 1 else ''} changed" if b.files_changed else ""
    )
    cut = " · output cut" if b.truncated else ""
    limit = f" · came to the limit of {b.limit}" if b.limit else ""
    tone: Tone = "warn" if b.status in ("ok", "denied", "cancelled") else "bad"
    if b.status == "ok" and not b.exit_code:
        tone = "good"
    return Line(
        "ended",
        f"{b.call_id} {b.status}{code}, {_duration(b.ms)}" + (f": {first}" if first else "") + limit + changed + cut,
        tone,
    )


@_on(t.UndoStarted)
def _undoing(b: t.UndoStarted) -> Line:
    who = f" by {b.by.client}" if b.by.client else ""
    when = f"at checkpoint {b.call_id}" if b.call_id.startswith("k") else f"before {b.call_id}"
    return Line("undo", f"{b.undo_id}{who}: the worktree becomes what it was {when}", "info")


@_on(t.UndoEnded)
def _undone(b: t.UndoEnded) -> Line:
    if b.error:
        return Line("undo", f"{b.undo_id} failed: {_first(b.error)}", "bad")
    kept = f", {b.refused_count} could not be brought back: {_first('; '.join(b.refused))}" if b.refused_count else ""
    return Line(
        "undo", f"{b.undo_id} done: {b.written} names restored, {b.removed} removed{kept}", "warn" if kept else "good"
    )


@_on(t.CheckpointCreated)
def _checkpoint(b: t.CheckpointCreated) -> Line:
    lacks = f", {b.left_out} files too large for it" if b.left_out else ""
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
    return Line("in doubt", f"{b.call_id} may or may not have happened: {_first(b.why)}", "bad")


@_on(t.ToolResolved)
def _resolved(b: t.ToolResolved) -> Line:
    return Line(
        "resolved",
        f"{b.call_id} {b.resolution.replace('_', ' ')}" + (f": {_first(b.evidence)}" if b.evidence else ""),
        "info",
    )


@_on(t.JobStarted)
def _job_started(b: t.JobStarted) -> Line:
    return Line("job", f"{b.job} started: {_first(b.what)}", "info")


@_on(t.JobWaiting)
def _job_waiting(b: t.JobWaiting) -> Line:
    return Line("job", f"waits for {_first(b.words)}", "dim")


@_on(t.JobEnded)
def _job_ended(b: t.JobEnded) -> Line:
    why = f": {_first(b.note)}" if b.note else ""
    tone: Tone = "good" if b.status == "ok" else "warn"
    return Line("job", f"{b.job} {job_words.outcome(b.status, b.exit_code, b.ms)}{why}", tone)


@_on(t.CheckVerdict)
def _verdict(b: t.CheckVerdict) -> Line:
    tests = "" if b.ran is None else f", {b.ran} test{'s' if b.ran != 1 else ''} ran"
    tests += f", {b.excused} left out" if b.excused else ""
    if b.passed:
        return Line("check", f"{b.call_id} counts: {_first(b.command)}{tests}", "good")
    why = f": {_first(b.why)}" if b.why else tests
    return Line("check", f"{b.call_id} does not pass: {_first(b.command)}{why}", "bad" if b.why else "warn")


@_on(t.PlanLoaded)
def _plan(b: t.PlanLoaded) -> Line:
    passed = sum(1 for entry in b.entries if entry.passes)
    left = sum(1 for entry in b.entries if entry.undecided)
    more = f", {left} with a criterion that no check decides" if left else ""
    return Line("plan", f"{b.path}: {passed} of {len(b.entries)} pass{more}", "warn" if left else "info")


@_on(t.PlanFlipped)
def _flipped(b: t.PlanFlipped) -> Line:
    return Line(
        "plan",
        f"{b.entry} {'passes' if b.passes else 'passes no more'}: {_first(b.why)}",
        "good" if b.passes else "bad",
    )


@_on(t.PlanDrafted)
def _drafted(b: t.PlanDrafted) -> Line:
    count = len(b.problems)
    wrong = f": {count} problem{'s' if count != 1 else ''}, {_first(b.problems[0])}" if b.problems else ""
    what = f"{b.path} is written, {b.count} entries" if b.count else f"{b.path} is no plan"
    return Line("plan", f"{what}{wrong}{'; sent back' if b.sent_back else ''}", "warn" if b.problems else "info")


@_on(t.PhaseBegun)
def _phase_begun(b: t.PhaseBegun) -> Line:
    return Line("phase", f"{_first(b.phase) or 'the plan'} begins", "info")


@_on(t.GateOpened)
def _gate_opened(b: t.GateOpened) -> Line:
    said = f": {_first(b.message)}" if b.message else ""
    return Line("gate", f"you let {_first(b.phase) or 'the plan'} go on{said}", "good")


@_on(t.PlanUpdated)
def _plan_updated(b: t.PlanUpdated) -> Line:
    if b.trigger:
        return Line("replan", f"{b.trigger.replace('_', ' ')}: {_first(b.reason)}", "warn")
    if b.entry:
        state = b.state.replace("_", " ") or "noted"
        why = b.reason or b.note
        return Line("plan", f"{b.entry} {state}" + (f": {_first(why)}" if why else ""), "warn" if b.reason else "info")
    return Line("plan", f"{len(b.steps or [])} steps: {_first('; '.join(b.steps or []))}", "info")


@_on(t.PlanRestored)
def _plan_restored(b: t.PlanRestored) -> Line:
    return Line("violation", f"before {b.call_id} the plan was changed and put back: {some(b.did)}", "bad")


@_on(t.ProgressKept)
def _progress_kept(b: t.ProgressKept) -> Line:
    if b.did:
        return Line("progress", f"{b.path}: {some(b.did)}; put back", "bad")
    return Line("progress", f"{b.path}, {'noted by the harness' if b.by_harness else 'the agent added to it'}", "dim")


@_on(t.PlanArchived)
def _plan_archived(b: t.PlanArchived) -> Line:
    return Line("plan", f"the plan before this one, of {b.branch}, is kept in {b.folder}", "info")


@_on(t.HooksEnded)
def _hooks_ended(b: t.HooksEnded) -> Line:
    said = b.text.partition("\n\n")[2]
    failed = f"{b.failed} failed: " if b.failed else ""
    return Line("hooks", f"after its edits, {failed}{_first(said)}", "warn" if b.failed else "dim")


@_on(t.IterationStarted)
def _iteration_started(b: t.IterationStarted) -> Line:
    again = f", attempt {b.attempt}" if b.attempt > 1 else ""
    return Line("task", f"iteration {b.n}: {b.entry} begins{again}", "info")


@_on(t.IterationEnded)
def _iteration_ended(b: t.IterationEnded) -> Line:
    tone: Tone = "good" if b.outcome == "passed" else "warn"
    return Line("task", f"iteration {b.n}: {b.entry} {b.outcome}: {_first(b.reason)}", tone)


@_on(t.ApproachFailed)
def _approach_failed(b: t.ApproachFailed) -> Line:
    return Line("task", f"{b.entry}, tried in vain: {_first(b.what)} ({_first(b.why)})", "warn")


@_on(t.RulesKnown)
def _rules_known(b: t.RulesKnown) -> Line:
    return Line("rules", f"the project has {some(b.paths)}", "dim")


@_on(t.RulesRead)
def _rules_read(b: t.RulesRead) -> Line:
    what = f"{b.bytes:,} bytes, sha256 {b.sha[:12]}: in the context" if b.sha else "not there any more"
    return Line("rules", f"{b.path}, {what}", "info")


@_on(t.RatchetViolation)
def _violated(b: t.RatchetViolation) -> Line:
    names = some([f"{one.path} {told_of(one.how)}" for one in b.files])
    return Line("violation", f"before {b.call_id}: {names}; the originals decide", "bad")


@_on(t.RatchetRestored)
def _restored(b: t.RatchetRestored) -> Line:
    what = "allowed changes are back" if b.allowed else "originals put back"
    left = f"; not possible: {_first('; '.join(b.refused))}" if b.refused else ""
    return Line("protected", f"{b.restored} {what}{left}", "bad" if b.refused else "info")


@_on(t.RatchetAnswered)
def _answered(b: t.RatchetAnswered) -> Line:
    who = f" by {b.by.client}" if b.by.client else ""
    said = "the agent's changes count from now on" if b.answer == ALLOW else "the originals stay"
    return Line("protected", f"{said}{who}", "info")


# -- approvals -------------------------------------------------------------------------------------


@_on(t.ApprovalRequested)
def _asked(b: t.ApprovalRequested) -> Line:
    return Line(
        "asks you",
        f"{b.approval_id} {b.kind}: {_first(b.title)} · risk {b.risk}",
        "bad" if b.risk in ("high", "critical") else "warn",
    )


@_on(t.ApprovalDecided)
def _decided(b: t.ApprovalDecided) -> Line:
    who = b.by.client or "someone"
    text = f": {_first(b.message)}" if b.message else ""
    value = f" {b.value}" if b.value is not None else ""
    return Line(
        "decided",
        f"{b.approval_id} {b.decision.replace('_', ' ')}{value} by {who}{text}",
        "good" if b.decision in ("allow", "allow_edited") else "info",
    )


@_on(t.ApprovalStale)
def _stale(b: t.ApprovalStale) -> Line:
    return Line("stale", f"{b.approval_id} what was approved has changed: {'; '.join(b.difference)}", "warn")


@_on(t.ApprovalWithdrawn)
def _withdrawn(b: t.ApprovalWithdrawn) -> Line:
    return Line("withdrawn", f"{b.approval_id}: {_first(b.why)}", "dim")


@_on(t.ApprovalDeferred)
def _deferred(b: t.ApprovalDeferred) -> Line:
    return Line("deferred", b.approval_id + (f" until {b.until}" if b.until else ""), "dim")


# -- money, trouble --------------------------------------------------------------------------------


@_on(t.ContextCleared)
def _context_cleared(b: t.ContextCleared) -> Line:
    return Line("context", f"older outputs and inputs cleared, {_context(b.tokens, b.after, b.trigger)}", "dim")


@_on(t.ContextReset)
def _context_reset(b: t.ContextReset) -> Line:
    return Line("context", f"begins anew with a hand-off, {_context(b.tokens, b.after, b.trigger)}", "info")


@_on(t.ContextCompacted)
def _context_compacted(b: t.ContextCompacted) -> Line:
    how = _context(b.tokens_before, b.tokens_after, b.trigger)
    return Line("context", f"begins anew with a hand-off and a summary, {how}", "info")


@_on(t.ContextWanted)
def _context_wanted(b: t.ContextWanted) -> Line:
    return Line("context", "to be compacted before the next turn", "info")


@_on(t.ContextKept)
def _context_kept(b: t.ContextKept) -> Line:
    return Line("context", f"not compacted: {_first(b.why)}", "dim")


@_on(t.ModelSummary)
def _summary(b: t.ModelSummary) -> Line:
    what = f"a summary that is not used: {_first(b.why)}" if b.why else "a summary of its task"
    return Line("summary", f"{what} · {b.usage.output:,} out · {usd(b.cost_nano)}", "warn" if b.why else "dim")


def _context(tokens: int, after: int, trigger: str) -> str:
    return f"{tokens:,} → about {after:,} tokens: {_first(trigger)}"


@_on(t.MemoryChanged)
def _memory_changed(b: t.MemoryChanged) -> Line:
    return Line("memory", memory_words.changed(b), "info")


@_on(t.MemoryShown)
def _memory_shown(b: t.MemoryShown) -> Line:
    return Line("memory", memory_words.shown(b), "dim")


@_on(t.BudgetReached)
def _budget(b: t.BudgetReached) -> Line:
    need = f", the next step needs {amount_of(b.cap, b.need)}" if b.need else ""
    return Line("cap", f"{b.cap}: {amount_of(b.cap, b.used)} of {amount_of(b.cap, b.limit)} used{need}", "warn")


@_on(t.CapsRaised)
def _raised(b: t.CapsRaised) -> Line:
    return Line("caps", f"{b.cap} is {amount_of(b.cap, b.limit)} now" if b.cap else f"now {_caps(b.caps)}", "info")


@_on(t.FinishUp)
def _finish(b: t.FinishUp) -> Line:
    return Line("finish", f"one last reply for at most {usd(b.allowance_nano)}", "info")


@_on(t.BreakerOpened)
def _breaker(b: t.BreakerOpened) -> Line:
    return Line("breaker", f"{b.kind} {b.count} times" + (f": {_first(b.detail)}" if b.detail else ""), "bad")


@_on(t.TimePassed)
def _time_passed(b: t.TimePassed) -> Line:
    return Line("time", f"{_first(b.why)}: {abs(b.seconds):.0f} s count against no cap on wall time", "dim")


@_on(t.HarnessNote)
def _note(b: t.HarnessNote) -> Line:
    tones: dict[str, Tone] = {"error": "bad", "warning": "warn"}
    return Line("note", (f"{b.component}: " if b.component else "") + _first(b.text), tones.get(b.level, "dim"))
