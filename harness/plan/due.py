"""What is due for a session's plan, by its fold. Pure."""

from __future__ import annotations

from harness.plan import already, gates, session_checks
from harness.plan.progress import Flip, Seen, Wanted, flips
from harness.projections.state.session_state import SessionState


def due(s: SessionState) -> list[Flip]:
    """Which entries have to change; none while a result is not judged, a call is open or a violation not answered, and
    none passes whose phase waits for a person's word.
    """
    if s.plan is None or s.unjudged or s.calls.open or not s.ratchet.clear:
        return []
    verdicts = {
        command: Seen(
            v.passed,
            v.call_id,
            v.outcome,
            masked=not s.decides(command),
        )
        for command, v in s.verdicts.items()
    }
    passes = s.plan.passes
    held = gates.held(s)
    empty = already.entries(s)
    found = flips(
        (
            Wanted(
                e.id,
                e.title,
                tuple(e.checks),
                e.undecided,
                passes[e.id],
                judged=s.judging.each_task,
                held=e.id in empty,
                by_word=e.id in s.plan.by_word,
            )
            for e in s.plan.entries.values()
        ),
        verdicts,
        s.judging.words(),
    )
    broken = session_checks.broken(s)
    found = [flip for flip in found if not (broken and flip.passes and flip.entry == s.iterations.entry)]
    return [flip for flip in found if not flip.passes or s.plan.entries[flip.entry].phase not in held]
