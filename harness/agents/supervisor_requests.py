"""What an agent's process may ask of the supervisor, and what it is answered: its endpoint's gate, and money that is
reserved before an attempt at a request and settled after it.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from harness.domain.calls.attempt import AttemptKind
from harness.events.body import Usage
from harness.protocol.connection import frames
from harness.protocol.connection.op import Op, Yes


class Greeted(msgspec.Struct, frozen=True):
    """The supervisor knows the agent's process."""

    epoch: int


@dataclass(frozen=True, slots=True)
class Greet(Op[Greeted]):
    """The first frame: which session's agent this is, under the secret of its lease."""

    OP = "brain_hello"
    sid: str
    gen: int
    secret: str
    proto: int = frames.PROTOCOL


class Reservation(msgspec.Struct, frozen=True, rename={"id": "reservation", "nano": "reserved_nano"}):
    """The worst case of one attempt, counted as spent until it is settled."""

    id: str
    nano: int


@dataclass(frozen=True, slots=True)
class Reserve(Op[Reservation]):
    """Reserve the worst case of one attempt at a request, in tokens; with ``hour`` its cache is written for an hour."""

    OP = "reserve"
    request_id: str
    attempt: int
    model: str
    est_input: int
    max_tokens: int
    hour: bool = False


class Admitted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"reserved": "reservation"}):
    """Whether the endpoint may be asked now. ``held`` says in words why not, ``since`` since when; with ``probe`` the
    agent reports the first words of the reply. ``reservation``: what was wanted with it, when it is not held.
    """

    probe: bool = False
    held: str = ""
    since: str = ""
    reserved: str = ""
    reserved_nano: int = 0

    @property
    def reservation(self) -> Reservation | None:
        """What was reserved, if anything was."""
        return Reservation(self.reserved, self.reserved_nano) if self.reserved else None


@dataclass(frozen=True, slots=True)
class Admit(Op[Admitted]):
    """Wait until the endpoint may be asked for this model, then reserve what is wanted with it."""

    OP = "admit"
    endpoint: str
    model: str
    reserve: Reserve | None = None


@dataclass(frozen=True, slots=True)
class Heard(Op[Yes]):
    """Say that the first words of a reply have come."""

    OP = "heard"


@dataclass(frozen=True, slots=True)
class TellDoing(Op[Yes]):
    """Say what the agent is doing while it thinks, in its own words."""

    OP = "doing"
    what: str
    evidence: str


@dataclass(frozen=True, slots=True)
class TellLimits(Op[Yes]):
    """Pass on what the endpoint said of a model's limits in tokens, and the size of a request that it refused; 0 for
    unknown.
    """

    OP = "model_limits"
    model: str
    window: int
    output: int
    bytes: int = 0


class AttemptOutcome(msgspec.Struct, frozen=True):
    """What came of an attempt, for who is to ask its endpoint next.

    ``wait_s``: what the endpoint asks to wait; ``free``: it surely cost nothing.
    """

    kind: AttemptKind
    message: str = ""
    wait_s: float | None = None
    free: bool = True


class Settlement(
    msgspec.Struct, frozen=True, omit_defaults=True, rename={"nano": "cost_nano", "source": "price_source"}
):
    """What an attempt cost, and where its price came from."""

    nano: int
    source: str
    retry_in_s: float | None = None
    """After a failure: when the endpoint is asked again, if that is known."""
    usage: Usage | None = None
    """What it was settled by, also by a brain before this one; None: nobody knows."""


@dataclass(frozen=True, slots=True)
class Settle(Op[Settlement]):
    """Settle a reservation. Without ``usage`` the cost is unknown; without ``outcome`` the endpoint was not asked, or
    its answer is unknown.
    """

    OP = "settle"
    reservation: str
    usage: Usage | None = None
    outcome: AttemptOutcome | None = None
