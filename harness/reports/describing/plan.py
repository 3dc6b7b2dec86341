"""One line for each record of: the plan, its phases and iterations, the checks and what is protected."""

from __future__ import annotations

from harness.domain.outcomes import FAILED, PASSED, WORDS
from harness.domain.text.formatting import by_whom, counted
from harness.domain.text.line import first
from harness.events import types as t
from harness.projections.state.protected_files import ALLOW, cannot_fail, some, told_of
from harness.reports.describing.line import Describers, Line, Tone

DESCRIBERS = Describers()
_on = DESCRIBERS.on


@_on(t.CheckVerdict)
def _verdict(b: t.CheckVerdict) -> Line:
    tests = "" if b.ran is None else f", {counted(b.ran, 'test')} ran"
    tests += f", {b.excused} left out" if b.excused else ""
    if b.passed:
        facts = f"; {first(b.facts[0])}" if b.facts else ""
        said = f"{b.call_id} {WORDS[b.outcome]}: {first(b.command)}{tests}{facts}"
        return Line("check", said, "warn" if b.facts else "good")
    why = f": {first(b.why)}" if b.why else tests
    return Line("check", f"{b.call_id} does not pass: {first(b.command)}{why}", "bad" if b.why else "warn")


@_on(t.CheckedBefore)
def _checked_before(b: t.CheckedBefore) -> Line:
    tests = "" if b.ran is None else f", {counted(b.ran, 'test')} ran"
    how = {PASSED: "passes already", FAILED: "fails"}.get(b.word, "cannot be told")
    why = f": {first(b.why)}" if b.why else tests
    return Line("before", f"{how}: {first(b.command)}{why}", "warn" if b.passed is not False else "dim")


@_on(t.ChecksSkipped)
def _checks_skipped(b: t.ChecksSkipped) -> Line:
    return Line("before", f"{counted(len(b.commands), 'check')} skipped by you before the work", "warn")


@_on(t.ChecksLooked)
def _checks_looked(b: t.ChecksLooked) -> Line:
    if not b.masked:
        return Line("check", f"{counted(len(b.commands), 'check')} looked at: none hides its exit code", "dim")
    more = f"; and {len(b.masked) - 1} more" if len(b.masked) > 1 else ""
    return Line("check", first(b.masked[0].told) + more, "warn")


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
        f"{b.entry} {'passes' if b.passes else 'passes no more'}: {first(b.why)}",
        "good" if b.passes else "bad",
    )


@_on(t.PlanAllowed)
def _allowed(b: t.PlanAllowed) -> Line:
    if not b.names:
        return Line("plan", f"what held before the work shows nothing done{by_whom(b.by.client)}", "info")
    return Line("plan", f"{some(b.names)} may pass, although it held before{by_whom(b.by.client)}", "info")


@_on(t.PlanTried)
def _tried(b: t.PlanTried) -> Line:
    return Line("plan", f"{b.path} is written: {counted(len(b.commands), 'command')} of it run first", "dim")


@_on(t.PlanDrafted)
def _drafted(b: t.PlanDrafted) -> Line:
    count = len(b.problems)
    wrong = f": {counted(count, 'problem')}, {first(b.problems[0])}" if b.problems else ""
    what = f"{b.path} is written, {counted(b.count, 'entry', 'entries')}" if b.count else f"{b.path} is no plan"
    return Line("plan", f"{what}{wrong}{'; sent back' if b.sent_back else ''}", "warn" if b.problems else "info")


@_on(t.PhaseBegun)
def _phase_begun(b: t.PhaseBegun) -> Line:
    return Line("phase", f"{first(b.phase) or 'the plan'} begins", "info")


@_on(t.GateOpened)
def _gate_opened(b: t.GateOpened) -> Line:
    said = f": {first(b.message)}" if b.message else ""
    return Line("gate", f"you let {first(b.phase) or 'the plan'} go on{said}", "good")


@_on(t.PlanUpdated)
def _plan_updated(b: t.PlanUpdated) -> Line:
    if b.trigger:
        return Line("replan", f"{b.trigger.replace('_', ' ')}: {first(b.reason)}", "warn")
    if b.entry:
        state = b.state.replace("_", " ") or "noted"
        why = b.reason or b.note
        return Line("plan", f"{b.entry} {state}" + (f": {first(why)}" if why else ""), "warn" if b.reason else "info")
    return Line("plan", f"{len(b.steps or [])} steps: {first('; '.join(b.steps or []))}", "info")


@_on(t.PlanRestored)
def _plan_restored(b: t.PlanRestored) -> Line:
    return Line("violation", f"the plan was changed and is put back: {some(b.did)}", "bad")


@_on(t.ProgressKept)
def _progress_kept(b: t.ProgressKept) -> Line:
    if b.did:
        return Line("progress", f"{b.path}: {some(b.did)}; put back", "bad")
    return Line("progress", f"{b.path}, {'noted by Watchfloor' if b.by_harness else 'the agent added to it'}", "dim")


@_on(t.PlanArchived)
def _plan_archived(b: t.PlanArchived) -> Line:
    return Line("plan", f"the plan before this one, of {b.branch}, is kept in {b.folder}", "info")


@_on(t.EditsLooked)
def _edits_looked(b: t.EditsLooked) -> Line:
    files = f" ({first(', '.join(b.names))})" if b.names else ""
    return Line("hooks", f"its commands changed files{files}" if b.changed else "its commands changed no file", "dim")


@_on(t.SetupFound)
def _setup_found(b: t.SetupFound) -> Line:
    return Line("task", f"{b.path} is there now; it runs before the next task", "info")


@_on(t.HooksEnded)
def _hooks_ended(b: t.HooksEnded) -> Line:
    said = b.text.partition("\n\n")[2]
    failed = f"{b.failed} failed: " if b.failed else ""
    return Line("hooks", f"after its edits, {failed}{first(said)}", "warn" if b.failed else "dim")


@_on(t.IterationStarted)
def _iteration_started(b: t.IterationStarted) -> Line:
    again = f", attempt {b.attempt}" if b.attempt > 1 else ""
    return Line("task", f"iteration {b.n}: {b.entry} begins{again}", "info")


@_on(t.IterationEnded)
def _iteration_ended(b: t.IterationEnded) -> Line:
    tone: Tone = "good" if b.outcome == "passed" else "warn"
    return Line("task", f"iteration {b.n}: {b.entry} {b.outcome}: {first(b.reason)}", tone)


@_on(t.ApproachFailed)
def _approach_failed(b: t.ApproachFailed) -> Line:
    return Line("task", f"{b.entry}, tried in vain: {first(b.what)} ({first(b.why)})", "warn")


@_on(t.RulesKnown)
def _rules_known(b: t.RulesKnown) -> Line:
    return Line("rules", f"the project has {some(b.paths)}", "dim")


@_on(t.RulesRead)
def _rules_read(b: t.RulesRead) -> Line:
    what = f"{b.bytes:,} bytes, sha256 {b.sha[:12]}: in the context" if b.sha else "not there any more"
    if b.left_out and not b.sha:
        return Line("rules", f"left out: {'; '.join(b.left_out)}", "warn")
    brought = f", with {', '.join(part.path for part in b.parts)}" if b.parts else ""
    left = f"; left out: {'; '.join(b.left_out)}" if b.left_out else ""
    link = f" (a link to {b.real})" if b.real else ""
    return Line("rules", f"{b.path}{link}, {what}{brought}{left}", "warn" if left else "info")


@_on(t.PolicyRead)
def _policy_read(b: t.PolicyRead) -> Line:
    told = f"; {len(b.ignored)} of its rules ignored: {first(b.ignored[0])}" if b.ignored else ""
    return Line("policy", f"{b.path} of the repository tightens yours{told}", "warn" if b.ignored else "info")


@_on(t.RatchetViolation)
def _violated(b: t.RatchetViolation) -> Line:
    if b.check:
        return Line("violation", f"{first(cannot_fail(b))}: {first(b.why)}", "bad")
    names = some([f"{one.path} {told_of(one.how)}" for one in b.files])
    return Line("violation", f"{names}; the originals decide", "bad")


@_on(t.RatchetRestored)
def _restored(b: t.RatchetRestored) -> Line:
    what = counted(b.restored, "allowed change" if b.allowed else "original")
    left = f"; not possible: {first('; '.join(b.refused))}" if b.refused else ""
    return Line("protected", f"{what} put back{left}", "bad" if b.refused else "info")


@_on(t.RatchetAnswered)
def _answered(b: t.RatchetAnswered) -> Line:
    said = "the agent's changes count from now on" if b.answer == ALLOW else "the originals stay"
    return Line("protected", f"{said}{by_whom(b.by.client)}", "info")
