"""A session's plan with its live state, as every client shows it. Pure."""

from __future__ import annotations

from collections import Counter

from harness.domain.outcomes import UNKNOWN, entry_outcome
from harness.events import types as t
from harness.plan import gates, order
from harness.plan.iterations import next_entry
from harness.projections.state.plan_state import IN_PROGRESS
from harness.projections.state.protected_files import PlanProgress
from harness.projections.state.session_state import SessionState
from harness.views.plan_views import CheckView, EntryView, PhaseView, PlanBoard


def board(s: SessionState) -> PlanBoard | None:
    """The plan of a session as its log has it; None when it has none."""
    plan = s.plan
    if plan is None:
        return None
    settled = gates.settled(s)
    entries = [_entry(s, plan, entry, entry.id in settled) for entry in plan.entries.values()]
    at = s.iterations.entry
    if plan.passes.get(at, True):  # none, or one that has passed while its task is being closed
        at = next((one.id for one in entries if one.state == IN_PROGRESS), "")
    now = gates.current(s)
    upcoming = next_entry(s)
    return PlanBoard(
        path=plan.path,
        passed=plan.passed,
        phase=now.name if now is not None else None,
        phases=_phases(s, plan),
        entries=entries,
        at=at,
        next=upcoming.id if upcoming is not None else "",
        steps=list(s.course.steps),
    )


def checks(s: SessionState) -> list[CheckView]:
    """The checks of a session, those of its plan's entries included, in the order in which they were given."""
    known = s.outcomes
    return [
        CheckView(
            command=command,
            passed=None if code is None else code == 0,
            before=s.before.word(command) or UNKNOWN,
            outcome=known.get(command, ""),
            facts=list(s.verdicts[command].facts) if command in s.verdicts else [],
        )
        for command, code in s.checks.items()
    ]


def _entry(s: SessionState, plan: PlanProgress, entry: t.PlanEntry, claimed: bool) -> EntryView:
    one = plan.work.standing[entry.id]
    before = [s.before.word(command) or UNKNOWN for command in entry.checks]
    return EntryView(
        id=entry.id,
        title=entry.title,
        state=plan.work.state(entry.id, plan.passes[entry.id]),
        phase=entry.phase,
        depends_on=list(entry.depends_on),
        waits_for=order.waits_for(plan, entry),
        attempts=one.attempts,
        evidence=list(one.evidence),
        blocked=one.blocked,
        undecided=entry.undecided,
        claimed=claimed and not plan.passes[entry.id],
        before=before,
        outcome=entry_outcome(before) if plan.passes[entry.id] else "",
        notes=list(one.notes),
    )


def _phases(s: SessionState, plan: PlanProgress) -> list[PhaseView]:
    total = Counter(entry.phase for entry in plan.entries.values())
    passed = Counter(entry.phase for entry in plan.entries.values() if plan.passes[entry.id])
    held = gates.closed(s)
    return [
        PhaseView(
            name=phase.name,
            passed=passed[phase.name],
            total=total[phase.name],
            gate=phase.gate,
            held=held is not None and held.name == phase.name,
            opened=phase.name in plan.work.opened,
            asks=list(phase.asks),
        )
        for phase in plan.work.phases
    ]
