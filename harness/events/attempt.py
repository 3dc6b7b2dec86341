"""One attempt at a request, as an agent asks the ledger for it before it is sent, and what it is answered."""

from __future__ import annotations

import msgspec

from harness.events.body import Usage


class Attempt(msgspec.Struct, frozen=True):
    """The worst case that is to be reserved, in tokens; ``hour``: written to a cache for an hour."""

    request_id: str
    attempt: int
    model: str
    est_input: int
    max_tokens: int
    hour: bool = False


class Reservation(msgspec.Struct, frozen=True, rename={"id": "reservation", "nano": "reserved_nano"}):
    """The worst case of one attempt, counted as spent until it is settled."""

    id: str
    nano: int


class Admitted(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename={"reserved": "reservation"}):
    """``held`` says in words why the endpoint is not to be asked for long, ``since`` since when; else it may be asked,
    and when ``probe`` the first words are told of. ``reservation``: what was wanted with it, when it is not held.
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


class Settlement(
    msgspec.Struct, frozen=True, omit_defaults=True, rename={"nano": "cost_nano", "source": "price_source"}
):
    """What an attempt cost, and where the price came from."""

    nano: int
    source: str
    retry_in_s: float | None = None
    """After a failure: when the endpoint is asked again, if that is known."""
    usage: Usage | None = None
    """What it was settled by, also by a brain before this one; None: nobody knows."""


class Greeted(msgspec.Struct, frozen=True):
    """The agent's process is known to the supervisor of this epoch."""

    epoch: int


class AttemptOutcome(msgspec.Struct, frozen=True):
    """What came of an attempt, for who is to ask its endpoint next.

    ``kind``: ``ok`` or one of ``ModelFailed``; ``wait_s``: what the endpoint asks to wait; ``free``: it surely cost
    nothing.
    """

    kind: str
    message: str = ""
    wait_s: float | None = None
    free: bool = True
