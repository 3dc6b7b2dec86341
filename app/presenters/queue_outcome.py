"""What is said of a decision that let a call run, once it is known what became of it. Pure."""

from __future__ import annotations

from harness.domain.calls.call_states import CallEnd
from harness.views.replies import Outcome

STALE = "stale"
_WORDS = {"started": "it runs", "pending": "it has not begun yet", STALE: "nothing ran"}


def words(outcome: Outcome) -> str:
    """In a few words, behind what was decided."""
    if outcome.became != "ended":
        return _WORDS.get(outcome.became, outcome.became)
    if outcome.status in (CallEnd.DENIED, CallEnd.REFUSED):
        return f"nothing ran: {outcome.status}"
    return f"it ran: {outcome.status}" if outcome.status else "it is over"


def stale(outcome: Outcome) -> tuple[str, str]:
    """Why nothing ran, and what to do."""
    differs = "; ".join(outcome.difference)[:500]
    why = f"stale: nothing ran, what it depends on is different now{f': {differs}' if differs else ''}"
    return f"{why}; it is asked again as {outcome.again}", f"read it: watchfloor approvals {outcome.again}"
