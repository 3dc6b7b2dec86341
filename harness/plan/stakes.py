"""What hangs on checks that hide their exit codes. Pure."""

from __future__ import annotations

from harness.plan import already
from harness.projections.state.protected_files import PlanProgress
from harness.projections.state.session_state import SessionState


def only_masked(s: SessionState, command: str) -> bool:
    """Whether nothing but checks that hide their exit codes would decide what this one is of: the task at hand, or the
    whole. A judge decides without them.
    """
    entry = s.plan.entries.get(s.iterations.entry) if s.plan is not None else None
    if s.judging.wanted is not None and (entry is None or s.judging.each_task):
        return False
    if entry is not None:
        return command in entry.checks and s.masking.only(entry.checks)
    return s.masking.only(s.checks)


def blind(s: SessionState, plan: PlanProgress) -> int:
    """Entries that do not pass and of which every check hides its exit code, or held before the work."""
    left = [entry for entry in plan.entries.values() if not plan.passes[entry.id] and not entry.undecided]
    held = already.entries(s)
    return sum(s.masking.only(entry.checks) or entry.id in held for entry in left)
