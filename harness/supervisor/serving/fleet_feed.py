"""What is pushed to the screens: rows that changed, totals and health, the queue."""

from __future__ import annotations

from harness.events.replies import ApprovalsPush, RowsPush
from harness.events.views import FleetView
from harness.supervisor.serving.parts import Parts
from harness.supervisor.upkeep import health


class FleetFeed:
    """Where pushes come from."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts

    def fleet_view(self) -> FleetView:
        """Totals and health."""
        p = self._p
        money = p.purse.totals()
        full = f"{p.fleet.full}; free some space, then every session goes on by itself" if p.fleet.full else ""
        own = [
            *p.purse.notes,
            full,
            p.purse.problem,
            p.book.problem,
            p.granting.book.problem,
            p.index.problem,
            p.disk.problem,
        ]
        warnings = [*p.settings.problems.values(), *filter(None, own), *p.fence.warnings()]
        return p.fleet.totals(
            FleetView(
                spent_today_nano=money.today.spent_nano,
                spent_total_nano=money.whole.spent_nano,
                reserved_nano=money.whole.reserved_nano,
                reserved_today_nano=money.today.reserved_nano,
                unknown_today_nano=money.today.unknown_nano,
                unknown_total_nano=money.whole.unknown_nano,
                day_cap_nano=money.day_cap,
                fleet_cap_nano=money.fleet_cap,
                epoch=p.epoch,
                fence=p.fence.summary,
                warnings=warnings,
                endpoints=p.gates.requests.views(),
                troubles=health.fleet(
                    {
                        **p.settings.problems,
                        "index": p.index.problem,
                        "fence": "; ".join(p.fence.warnings()),
                        "disk": p.fleet.full or p.disk.problem,
                        "ledger": p.purse.problem,
                    }
                ),
            )
        )

    def rows(self, changed: set[str] | None) -> RowsPush:
        """The ``rows`` push."""
        sessions = self._p.fleet.sessions
        wanted = list(sessions) if changed is None else sorted(changed & sessions.keys())
        gone = [] if changed is None else sorted(changed - sessions.keys())
        rows = [self._p.fleet.row(sessions[sid]) for sid in wanted]
        return RowsPush(rows=rows, gone=gone, fleet=self.fleet_view())

    async def approvals(self) -> ApprovalsPush:
        """The ``approvals`` push."""
        return ApprovalsPush(approvals=await self._p.approvals.all())
