"""What was paid, as clients see it: the same from a ledger that is kept and from one at rest."""

from __future__ import annotations

import functools
from collections.abc import Iterable

import msgspec

from harness.events import types as t
from harness.supervisor.money.readings import Readings
from harness.views.cost_views import Costs, DayPaid, Paid, SessionPaid
from harness.views.rows import Money
from harness.views.session_views import FleetView, SessionRow


def fleet(base: FleetView, books: Readings | None) -> FleetView:
    """``base`` with what was spent and is held today and in all, and the caps on both."""
    if books is None:
        return base
    today = books.today()
    whole = books.fleet()
    limits = books.limits(t.Caps())
    return msgspec.structs.replace(
        base,
        spent_today_nano=today.spent_nano,
        spent_total_nano=whole.spent_nano,
        reserved_nano=whole.reserved_nano,
        reserved_today_nano=today.reserved_nano,
        unknown_today_nano=today.unknown_nano,
        unknown_total_nano=whole.unknown_nano,
        day_cap_nano=limits.day_usd,
        fleet_cap_nano=limits.fleet_usd,
    )


def costs(view: FleetView, sessions: Iterable[tuple[SessionRow, t.Usage]], books: Readings | None) -> Costs:
    """The reply of ``costs``: each session with its row and what its log says of its usage, those that were removed
    together, and every day on which something was spent, oldest first.
    """
    known = list(sessions)
    gone = books.sessions() - {row.sid for row, _ in known} if books is not None else set[str]()
    days = books.days(None) if books is not None else []
    return Costs(
        fleet=view,
        sessions=[_session(row, usage, books) for row, usage in known],
        removed=_figures(functools.reduce(Money.with_another, map(books.money, gone), Money(0)))
        if books is not None
        else Paid(),
        days=[
            DayPaid(
                day=d.day,
                nano=d.spent_nano,
                reserved_nano=d.reserved_nano,
                tokens=d.tokens,
                requests=d.requests,
                unknown_nano=d.unknown_nano,
                unknown_tokens=d.unknown_tokens,
            )
            for d in days
        ],
    )


def _session(row: SessionRow, usage: t.Usage, books: Readings | None) -> SessionPaid:
    own = Money(row.spent_nano, 0, "", row.tokens, row.requests, usage)
    return SessionPaid(
        sid=row.sid,
        name=row.name,
        model=row.model,
        state=row.state,
        cap_nano=row.cap_nano,
        **msgspec.structs.asdict(_figures(own if books is None else books.money(row.sid))),
    )


def _figures(money: Money) -> Paid:
    return Paid(
        spent_nano=money.spent or 0,
        reserved_nano=money.reserved,
        requests=money.requests,
        tokens=money.tokens,
        unknown_nano=money.unknown,
        unknown_tokens=money.unknown_tokens,
        usage=money.usage,
        cache_hit=money.usage.cache_hit,
        price_source=money.price,
    )
