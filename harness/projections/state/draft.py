"""What a log says of a plan that the session writes itself. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.events import message_parts
from harness.events import types as t
from harness.events.body import Body


@dataclass(slots=True)
class PlanDraft:
    """Where the writing stands. Built only by `take`."""

    claim: int = -1
    """The reply that says it is written, until somebody looked or said something; -1 for none."""
    sent_back: bool = False
    """What was wrong with it was told once."""
    commands: list[str] = field(default_factory=list)
    """Those of the plan that was last looked at: they run before it counts."""

    def take(self, seq: int, body: Body) -> None:
        """Apply one record."""
        match body:
            case t.ModelMessage() if not body.purpose:
                self.claim = seq if body.stop == message_parts.DONE else -1
            case t.UserMessage():
                self.claim = -1
            case t.PlanTried():
                self.commands = list(body.commands)
            case t.PlanDrafted():
                self.claim = -1
                self.sent_back = self.sent_back or body.sent_back
            case _:
                pass
