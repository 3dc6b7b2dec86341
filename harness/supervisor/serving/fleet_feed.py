"""What is pushed to the screens: rows that changed, totals and health, the queue."""

from __future__ import annotations

from harness.supervisor.money import paid
from harness.supervisor.serving.parts import Parts
from harness.supervisor.upkeep import health
from harness.views.replies import ApprovalsPush, RowsPush
from harness.views.session_views import FleetView


class FleetFeed:
    """Where pushes come from."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts

    def fleet_view(self) -> FleetView:
        """Totals and health."""
        p = self._p
        full = f"{p.fleet.full}; free some space, then every session goes on by itself" if p.fleet.full else ""
        own = [
            *p.budget_service.notes,
            full,
            p.budget_service.problem,
            p.book.problem,
            p.granting.book.problem,
            p.index.problem,
            p.disk.problem,
        ]
        warnings = [*p.settings.problems.values(), *filter(None, own), *p.sandbox.warnings()]
        view = FleetView(
            epoch=p.epoch,
            sandbox=p.sandbox.summary,
            warnings=warnings,
            endpoints=p.gates.requests.views(),
            troubles=health.fleet(
                {
                    **p.settings.problems,
                    "index": p.index.problem,
                    "sandbox": "; ".join(p.sandbox.warnings()),
                    "disk": p.fleet.full or p.disk.problem,
                    "ledger": p.budget_service.problem,
                }
            ),
        )
        return p.fleet.totals(paid.fleet(view, p.budget_service.books))

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
