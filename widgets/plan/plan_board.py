"""A plan with its live state as lines: phases with their gates, entries as they stand, the one at hand marked. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from harness.domain import outcomes
from harness.domain.outcomes import FAILS, NOW_PASSES, STILL_PASSES
from harness.domain.text.formatting import counted
from harness.projections.state.plan_state import BLOCKED, FAILED, IN_PROGRESS, PASSED
from harness.views.plan_views import CheckView, EntryView, PhaseView, PlanBoard
from widgets.plan.plan_view import MAX_LINES, NEXT, NOW, PlanFile, PlanLine

_KINDS = {PASSED: "done", FAILED: "failed", BLOCKED: "blocked", IN_PROGRESS: "open"}
_BY_OUTCOME = {FAILS: "failed", STILL_PASSES: "still"}
_BESIDE = {
    NOW_PASSES: "now passes: it failed before the work",
    STILL_PASSES: "still passes: it did before the work, too",
    outcomes.PASSED: "passed before the work",
    outcomes.FAILED: "failed before the work",
}
_NAMED = 5


def as_file(board: PlanBoard) -> PlanFile:
    """The plan in the form in which files are shown; its age says nothing, it is as it stands now."""
    lines = list(_lines(board))
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], PlanLine("note", f"{len(lines) - MAX_LINES} more lines")]
    return PlanFile(board.path, 0.0, tuple(lines), board.passed, len(board.entries))


def checks_as_file(checks: Sequence[CheckView]) -> PlanFile:
    """What decides that a session without a plan is done, in the same form."""
    lines = [line for check in checks for line in _check(check)]
    if not lines:
        lines = [PlanLine("note", "none was given: nothing decides that it is done")]
    return PlanFile("checks", 0.0, tuple(lines), sum(check.passed is True for check in checks), len(checks), "passed")


def _check(check: CheckView) -> Iterator[PlanLine]:
    if check.passed is None:
        yield PlanLine("open", check.command)
    else:
        yield PlanLine(_BY_OUTCOME.get(check.outcome, "done"), check.command)
    if said := _BESIDE.get(check.outcome or check.before):
        yield PlanLine("fact", said)
    yield from (PlanLine("fact", fact) for fact in check.facts)


def _lines(board: PlanBoard) -> Iterator[PlanLine]:
    by_phase: dict[str, list[EntryView]] = {}
    for entry in board.entries:
        by_phase.setdefault(entry.phase, []).append(entry)
    for phase in board.phases:
        here = phase.name == board.phase
        if phase.name or phase.gate or phase.asks or len(board.phases) > 1:
            yield PlanLine("heading", f"{phase.name or '(no phase)'}  {phase.passed}/{phase.total}")
        if phase.gate:
            yield _gate(phase)
        if phase.asks:
            yield PlanLine("text", f"gate: asks you about each {', '.join(phase.asks)}")
        if here and board.steps:
            steps = "; ".join(f"{n}. {step}" for n, step in enumerate(board.steps, 1))
            yield PlanLine("text", f"  steps: {steps}")
        for entry in by_phase.get(phase.name, ()):
            yield from _entry(entry, board)


def _gate(phase: PhaseView) -> PlanLine:
    if phase.opened:
        return PlanLine("opened", f"gate, opened by you: {phase.gate}")
    if phase.held:
        return PlanLine("call", f"gate, waits for you: {phase.gate}")
    return PlanLine("text", f"gate: {phase.gate}")


def _entry(entry: EntryView, board: PlanBoard) -> Iterator[PlanLine]:
    at = entry.id == board.at
    upcoming = entry.id == board.next and not board.at
    kind = _KINDS.get(entry.state, "open")
    if entry.held_before and entry.state == PASSED:
        kind = "still"
    if at or upcoming:
        kind = NOW if at else NEXT
    yield PlanLine(kind, f"{entry.id}  {entry.title}" + ("  ← next" if upcoming else ""))
    if told := "; ".join(_told(entry, at)):
        yield PlanLine("fact", told)
    if entry.blocked:
        yield PlanLine("fact", f"blocked: {entry.blocked}")
    if entry.notes and (at or entry.state != PASSED):
        yield PlanLine("fact", f"note: {entry.notes[-1]}")


def _told(entry: EntryView, at: bool) -> Iterator[str]:
    """What a line's mark does not say; of an entry that passes, only what is unusual."""
    if at:
        yield "in progress"
    if entry.state == FAILED and not at:
        yield "failed"
    if entry.attempts > 1 or (entry.attempts and entry.state == FAILED):
        yield counted(entry.attempts, "attempt")
    if entry.evidence and entry.state != PASSED:
        yield "checked at " + ", ".join(f"#{seq}" for seq in entry.evidence[-3:])
    if entry.waits_for and entry.state != PASSED:
        more = len(entry.waits_for) - _NAMED
        yield "after " + ", ".join(entry.waits_for[:_NAMED]) + (f" and {more} more" if more > 0 else "")
    if entry.held_before:
        yield "still passes" if entry.state == PASSED else "its checks passed before the work, too"
    if entry.undecided and entry.state != PASSED:
        yield f"{entry.undecided} of its criteria no check decides"
