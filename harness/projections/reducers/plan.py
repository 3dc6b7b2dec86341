"""What these records change in the state: the plan, its phases and iterations, the checks and what is protected."""

from __future__ import annotations

from harness.events import types as t
from harness.events.plan.course_events import ASSUMPTION
from harness.events.plan.iteration_events import NEVER
from harness.projections.reducers.handlers import Handlers
from harness.projections.state import protected_files
from harness.projections.state.plan_state import Work
from harness.projections.state.session_state import SessionState

HANDLERS = Handlers()
_on = HANDLERS.on


@_on(t.HooksEnded)
def _hooks_ended(s: SessionState, r: t.Record, b: t.HooksEnded) -> None:
    s.hooks = s.hooks.told()


@_on(t.EditsLooked)
def _edits_looked(s: SessionState, r: t.Record, b: t.EditsLooked) -> None:
    s.hooks = s.hooks.looked(b.changed)


@_on(t.SetupFound)
def _setup_found(s: SessionState, r: t.Record, b: t.SetupFound) -> None:
    if s.plan is not None:
        s.plan.setup = b.path


@_on(t.CheckVerdict)
def _verdict(s: SessionState, r: t.Record, b: t.CheckVerdict) -> None:
    s.unjudged.pop(b.call_id, None)
    s.verdicts[b.command] = b
    if b.passed and b.command not in s.passed_once:
        s.passed_once.append(b.command)
    s.iterations = s.iterations.judged(r.seq, b.command)
    if not b.passed and s.checks.get(b.command) == 0:
        s.checks[b.command] = -1
    if b.ran is not None:
        s.first_counts.setdefault(b.command, (b.ran, b.excused or 0))
    if s.plan is not None:
        by_task = s.intent is not None and s.intent.ways.fresh != NEVER
        s.plan.work.judged(r.seq, b, s.plan.passes, by_task=by_task)


@_on(t.CheckedBefore)
def _checked_before(s: SessionState, r: t.Record, b: t.CheckedBefore) -> None:
    s.before.checked(b)
    if b.ran:
        s.first_counts[b.command] = (b.ran, b.excused or 0)


@_on(t.ChecksSkipped)
def _checks_skipped(s: SessionState, r: t.Record, b: t.ChecksSkipped) -> None:
    s.before.skip(b.commands)


@_on(t.ChecksLooked)
def _checks_looked(s: SessionState, r: t.Record, b: t.ChecksLooked) -> None:
    s.masking.take(b)


@_on(t.RatchetViolation)
def _violated(s: SessionState, r: t.Record, b: t.RatchetViolation) -> None:
    s.ratchet.violated(r.seq, b)


@_on(t.RatchetRestored)
def _restored(s: SessionState, r: t.Record, b: t.RatchetRestored) -> None:
    s.ratchet.restored(r.seq, b)
    if b.allowed:
        s.first_counts.clear()  # other tests run from now on


@_on(t.PlanLoaded)
def _plan(s: SessionState, r: t.Record, b: t.PlanLoaded) -> None:
    passes = {entry.id: entry.passes for entry in b.entries}
    s.plan = protected_files.PlanProgress(
        b.path, {entry.id: entry for entry in b.entries}, passes, setup=b.setup, progress=b.progress
    )
    s.plan.work = Work.on(b)
    s.plan.text = b.text
    s.plan.proved = [name for name, passes_already in passes.items() if passes_already]
    s.plan.by_word = list(b.by_word)
    s.plan.asked = b.text is not None
    if b.text is not None:  # of the other plans the intent has them already
        s.checks |= {command: None for entry in b.entries for command in entry.checks if command not in s.checks}


@_on(t.PlanFlipped)
def _flipped(s: SessionState, r: t.Record, b: t.PlanFlipped) -> None:
    if s.plan is not None:
        s.plan.passes[b.entry] = b.passes
        if b.passes and b.entry not in s.plan.proved:
            s.plan.proved.append(b.entry)


@_on(t.PlanAllowed)
def _allowed(s: SessionState, r: t.Record, b: t.PlanAllowed) -> None:
    if s.plan is not None:
        s.plan.by_word += b.names
        s.plan.asked = True


@_on(t.PhaseBegun)
def _phase_begun(s: SessionState, r: t.Record, b: t.PhaseBegun) -> None:
    if s.plan is not None:
        s.plan.work.begun.append(b.phase)


@_on(t.GateOpened)
def _gate_opened(s: SessionState, r: t.Record, b: t.GateOpened) -> None:
    if s.plan is not None:
        s.plan.work.opened.append(b.phase)


@_on(t.PlanUpdated)
def _plan_updated(s: SessionState, r: t.Record, b: t.PlanUpdated) -> None:
    if s.plan is not None:
        s.plan.work.updated(b)
    if b.trigger == ASSUMPTION:
        s.iterations = s.iterations.mistaken(r.seq, b.reason)


@_on(t.PlanRestored)
def _plan_restored(s: SessionState, r: t.Record, b: t.PlanRestored) -> None:
    if s.plan is not None:
        s.plan.did = list(b.did)
        s.plan.did_seq = r.seq


@_on(t.RulesKnown)
def _rules_known(s: SessionState, r: t.Record, b: t.RulesKnown) -> None:
    s.rules = s.rules.at_start(b.paths)


@_on(t.RulesRead)
def _rules_read(s: SessionState, r: t.Record, b: t.RulesRead) -> None:
    s.rules = s.rules.taken(b)


@_on(t.PolicyRead)
def _policy_read(s: SessionState, r: t.Record, b: t.PolicyRead) -> None:
    s.repository_policy = b.text


@_on(t.MergeHandedBack)
def _handed_back(s: SessionState, r: t.Record, b: t.MergeHandedBack) -> None:
    s.ratchet.accepted |= {one.path: one.sha for one in b.files}
    s.first_counts.clear()  # other tests run from now on


@_on(t.RatchetAnswered)
def _answered(s: SessionState, r: t.Record, b: t.RatchetAnswered) -> None:
    s.ratchet.answered(b)


@_on(t.IterationStarted)
def _iteration_started(s: SessionState, r: t.Record, b: t.IterationStarted) -> None:
    s.iterations = s.iterations.started(r.seq, b)
    s.judging.turned()
    if s.plan is not None:
        s.plan.work.begin(b.entry)


@_on(t.IterationEnded)
def _iteration_ended(s: SessionState, r: t.Record, b: t.IterationEnded) -> None:
    s.iterations = s.iterations.ended(b)
    s.judging.turned()
    if s.plan is not None:
        s.plan.work.ended(b.entry)


@_on(t.ProgressKept)
def _progress_kept(s: SessionState, r: t.Record, b: t.ProgressKept) -> None:
    s.iterations = s.iterations.noted()


@_on(t.ApproachFailed)
def _approach_failed(s: SessionState, r: t.Record, b: t.ApproachFailed) -> None:
    s.iterations = s.iterations.failed(r.seq, b)
