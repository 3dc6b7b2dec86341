"""What every session has spent: a small table with totals, from the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType

from app.client.snapshot import Dirty, Snapshot
from app.framework.handlers import Handler, Handlers, bindings, in_list
from app.screens.base import WatchScreen
from harness.protocol.client import SupervisorError, Unreachable
from harness.views.cost_views import Costs, SessionPaid
from widgets.base.help_bar import HelpBar
from widgets.fleet.budget_bar import BudgetBar
from widgets.fleet.cost_table import CostTable
from widgets.fleet.fleet_bar import Banner


class CostsScreen(WatchScreen):
    """Spend by session, and of the fleet against its caps."""

    CSS_PATH = "costs.tcss"
    SCOPES: ClassVar[tuple[str, ...]] = ("costs",)
    BINDINGS: ClassVar[list[BindingType]] = bindings("costs")
    AUTO_FOCUS: ClassVar[str | None] = "CostTable"

    def __init__(self) -> None:
        super().__init__()
        self._more: Mapping[str, SessionPaid] = {}

    def compose(self) -> ComposeResult:
        yield Banner()
        yield BudgetBar("today", dom_id="day")
        yield BudgetBar("fleet", dom_id="fleet")
        yield CostTable()
        yield HelpBar()

    def on_mount(self) -> None:
        super().on_mount()
        self._reload()

    @property
    def table(self) -> CostTable:
        """The table."""
        return self.query_one(CostTable)

    def sync(self, snapshot: Snapshot, dirty: Dirty) -> bool:
        if dirty & Dirty.ROWS:
            self.table.set_rows(list(snapshot.rows.values()), self._more)
        if dirty & (Dirty.FLEET | Dirty.ROWS):
            self.query_one("#day", BudgetBar).set_today(snapshot.fleet)
            self.query_one("#fleet", BudgetBar).set_whole(snapshot.fleet)
        if dirty & Dirty.LINK:
            self.show_link(snapshot)
        return False

    def _reload(self) -> None:
        self.host.run_beside(self._read())

    async def _read(self) -> None:
        try:
            costs = await self.host.feed.reply(Costs, "costs")
        except (SupervisorError, Unreachable) as exc:
            self.host.tell(f"no costs: {exc}", bad=True)
            return
        self._more = {paid.sid: paid for paid in costs.sessions}
        if self.stands:
            self.table.set_removed(costs.removed)
            self.sync(self.host.snapshot, Dirty.ROWS)

    # -- actions -----------------------------------------------------------------------------------

    def handlers(self) -> Handlers:
        return {
            **in_list(lambda: self.table, self._no_session),
            "session.open": Handler(self._open, self._no_session),
            "session.reload": Handler(self._reload),
        }

    def _no_session(self) -> str:
        return "" if self.host.snapshot.rows else "there is no session yet"

    def _open(self) -> None:
        if self.table.selected:
            self.host.open_session(self.table.selected, "cost")
