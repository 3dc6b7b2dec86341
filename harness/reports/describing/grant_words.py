"""Records of rules as one line each. Raw text: what a rule covers is the agent's."""

from __future__ import annotations

from harness.domain.text.formatting import counted, local
from harness.events.calls.grant_events import GrantMade, GrantUsed


def made(b: GrantMade) -> str:
    """A rule, and how far it goes."""
    typed = ", critical" if b.typed else ""
    what = b.words[0] if b.words else ""
    calls = counted(b.count, "call")
    return f"{b.grant} of {b.approval_id} for this {b.scope}, {calls}, until {local(b.expires)}{typed}: {what}"


def used(b: GrantUsed) -> str:
    """A call that a rule let run."""
    return f"{b.grant} allows {b.call_id}, call {b.use} of {b.count}"
