"""What was paid, as a client sees it: by session, for those that are removed, and by day."""

from __future__ import annotations

import msgspec

from harness.events.body import Usage
from harness.views.session_views import FleetView


class Paid(msgspec.Struct, frozen=True, kw_only=True):
    """What one session, or several, cost by the ledger: dollars and tokens. What counts as spent has the requests of
    unknown outcome in full, as ``unknown_…`` says.
    """

    spent_nano: int = 0
    reserved_nano: int = 0
    requests: int = 0
    tokens: int = 0
    unknown_nano: int = 0
    unknown_tokens: int = 0
    usage: Usage = Usage()
    cache_hit: float | None = None
    price_source: str = ""


class SessionPaid(Paid, frozen=True, kw_only=True):
    """What one session cost."""

    sid: str
    name: str
    model: str = ""
    state: str = ""
    cap_nano: int | None = None


class DayPaid(msgspec.Struct, frozen=True, kw_only=True):
    """What one day cost (``YYYY-MM-DD``, UTC)."""

    day: str
    nano: int
    reserved_nano: int
    tokens: int
    requests: int
    unknown_nano: int
    unknown_tokens: int


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """The reply of ``costs``."""

    fleet: FleetView
    sessions: list[SessionPaid]
    removed: Paid = Paid()
    days: list[DayPaid] = []
