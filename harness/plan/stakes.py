"""What hangs on a check that passes: only where an entry would be set by it, or the session end, is it tried whether it
can fail. Pure.
"""

from __future__ import annotations

from harness.events.ratchet import PlanProgress
from harness.events.session_state import SessionState
from harness.plan.iterations import by_task, next_entry


def hangs(s: SessionState, call_id: str, command: str) -> bool:
    """Whether this check's pass would set an entry or end the session, with the others of its round as they are."""
    of = call_id.partition(".")[0]
    failing = {c for c, v in s.verdicts.items() if not v.passed and v.call_id.partition(".")[0] == of}
    if s.plan is not None:
        decided = (s.plan.entries[name] for name in s.plan.work.decided_by.get(command, ()))
        if any(not s.plan.passes[entry.id] and failing.isdisjoint(entry.checks) for entry in decided):
            return True
    if s.finish_up is None and by_task(s) and (s.iterations.entry or next_entry(s) is not None):
        return False  # of a task at hand, or run again before the next one
    return failing.isdisjoint(s.checks)


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
    """Entries that do not pass and of which every check hides its exit code."""
    left = [entry for entry in plan.entries.values() if not plan.passes[entry.id] and not entry.undecided]
    return sum(s.masking.only(entry.checks) for entry in left)


def round_over(s: SessionState) -> bool:
    """Whether no check of the harness is left to run: then it is known what hangs on those that passed."""
    return not s.check_calls
