"""Records of the ledger log (``state/ledger``). Amounts are nano-USD and tokens."""

from __future__ import annotations

import msgspec

from harness.events.types import Usage


class CapsInForce(msgspec.Struct, frozen=True, omit_defaults=True):
    """The caps in force above one request; None = no cap of that kind."""

    session_usd: int | None = None
    session_tokens: int | None = None
    day_usd: int | None = None
    day_tokens: int | None = None
    fleet_usd: int | None = None
    fleet_tokens: int | None = None


class Reserved(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Durable before the request is sent: its worst case, the day it counts for, and the caps it was held against.

    ``gen`` is the lease of the brain that may send it (-1: not kept).
    ``rebuilt``: written later, from a session's log or the ledger's anchor, because the ledger that held it was gone.
    """

    reservation: str
    sid: str
    request_id: str
    attempt: int
    nano: int
    tokens: int
    day: str
    model: str = ""
    source: str = ""
    limits: CapsInForce = CapsInForce()
    gen: int = -1
    rebuilt: bool = False


class Settled(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The request's real cost replaces its worst case.

    ``usage`` None: by a version that did not keep it; ``sent`` false: nothing ever went out.
    """

    reservation: str
    nano: int
    tokens: int
    source: str = ""
    usage: Usage | None = None
    sent: bool = True


class Unknown(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Nobody knows how the request ended: it counts in full, as spent."""

    reservation: str


class Raised(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A human raised a cap of the day (for that day) or of the fleet, over the configured ``base``; another base ends
    it.

    ``decision`` names the decision in a session's log that says so; it is durable first.
    """

    cap: str
    limit: int
    base: int
    day: str
    decision: str = ""


LedgerRecord = Reserved | Settled | Unknown | Raised
NAMES: dict[type, str] = {
    Reserved: "ledger.reserved",
    Settled: "ledger.settled",
    Unknown: "ledger.unknown",
    Raised: "ledger.raised",
}
_Kind = type[Reserved] | type[Settled] | type[Unknown] | type[Raised]
TYPES: dict[str, _Kind] = {
    "ledger.reserved": Reserved,
    "ledger.settled": Settled,
    "ledger.unknown": Unknown,
    "ledger.raised": Raised,
}


class _Line(msgspec.Struct, frozen=True):
    type: str
    data: msgspec.Raw


_line = msgspec.json.Decoder(_Line)


def decode(line: bytes) -> LedgerRecord | None:
    """The record of one ledger line; None for a type of a newer version. Raises msgspec.DecodeError."""
    outer = _line.decode(line)
    kind = TYPES.get(outer.type)
    return None if kind is None else msgspec.json.decode(outer.data, type=kind)


def to_wire(record: LedgerRecord) -> tuple[str, dict[str, object]]:
    """(type, data) as the log writer takes them."""
    data: dict[str, object] = msgspec.to_builtins(record)
    return NAMES[type(record)], data
