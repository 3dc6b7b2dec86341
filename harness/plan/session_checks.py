"""A session's own checks beside the criteria of its plan: they run at the end of each task too, and a task that breaks
one that passed before is not over. Pure.
"""

from __future__ import annotations

from harness.domain.outcomes import PASSED
from harness.projections.state.session_state import SessionState


def own(s: SessionState) -> tuple[str, ...]:
    """The checks that were given for the whole, whether or not an entry of the plan has the same."""
    entries = s.plan.entries.values() if s.plan is not None else ()
    planned = {command for entry in entries for command in entry.checks}
    given = s.intent.given if s.intent is not None else []
    return tuple(command for command in s.checks if command in given or command not in planned)


def passed_before(s: SessionState) -> frozenset[str]:
    """Those that passed before the work began, or at some time since."""
    return frozenset(c for c in own(s) if c in s.passed_once or s.before.word(c) == PASSED)


def broken(s: SessionState) -> bool:
    """Whether one of them passed before and does not now, while a task is at hand."""
    if not s.iterations.entry:
        return False
    return any(command in s.verdicts and not s.verdicts[command].passed for command in passed_before(s))
