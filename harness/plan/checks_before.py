"""Which checks are to run before the work, by the fold: each of a session's own and of its plan's, once. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from harness.domain.states import Desired
from harness.plan import iterations
from harness.projections.state.checked_before import Run
from harness.projections.state.session_state import SessionState


@dataclass(frozen=True, slots=True)
class RunBefore:
    """Run these commands on the files as they are."""

    commands: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Conclude:
    """All of them ran: restore what they changed, then put on record what they said, by call."""

    runs: dict[str, Run]


Due: TypeAlias = RunBefore | Conclude


def due(s: SessionState) -> Due | None:
    """What the supervisor does before anybody thinks; what makes the place ready comes first."""
    if s.intent is None or s.created is None or s.ended is not None or s.desired != Desired.RUNNING:
        return None
    if s.calls.open or s.request is not None or s.unjudged:
        return None
    if s.before.runs:
        return Conclude(s.before.ended())
    if s.finish_up is not None or not (lacking := s.before.lacking(s.criteria)):
        return None
    return None if isinstance(iterations.due(s), iterations.Prepare) else RunBefore(tuple(lacking))
