"""A request that is ready to be paid for and sent."""

from __future__ import annotations

from dataclasses import dataclass, field

from harness.agents.supervisor_requests import Reservation, Reserve
from harness.brain.api.stream import AttemptRequest
from harness.events import types as t


@dataclass(frozen=True, slots=True)
class Draft:
    """``estimate``: input tokens, never too few; ``hour``: it asks for cache entries that live an hour; ``unfit``: why
    it cannot be sent, empty when it can; the rest as in `AttemptRequest`.
    """

    request: AttemptRequest
    estimate: int
    id: str
    attempt: int
    purpose: str = ""
    delivers: list[str] = field(default_factory=list)
    layers: dict[str, int] = field(default_factory=dict)
    working: int = 0
    memory: int = -1
    hour: bool = False
    unfit: str = ""

    @property
    def readings(self) -> int:
        """How often it may be read, and so paid for: twice by an endpoint that may summarise it first."""
        return 2 if self.request.own.compacts(self.estimate) else 1

    @property
    def worst(self) -> Reserve:
        """What is to be reserved for it."""
        most = self.request.max_tokens * self.readings
        return Reserve(self.id, self.attempt, self.request.model, self.estimate * self.readings, most, self.hour)

    def as_sent(self, reservation: Reservation, head: int) -> t.ModelRequest:
        """The record of it, paid for by this reservation."""
        return t.ModelRequest(
            request_id=self.id,
            attempt=self.attempt,
            model=self.request.model,
            reservation=reservation.id,
            reserved_nano=reservation.nano,
            est_input=self.estimate,
            max_tokens=self.request.max_tokens,
            upto_seq=head,
            purpose=self.purpose,
            delivers=self.delivers,
            layers=self.layers,
            working=self.working,
            memory=self.memory,
        )
