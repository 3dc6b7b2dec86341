"""A fleet at rest, answered by the supervisor's own read operations over its files: no process is started, and nothing
is written.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from harness.budget.ledger import NotReserved
from harness.eventlog.framing import LogError
from harness.events.body import Usage
from harness.protocol.config import config
from harness.protocol.config.sections import CapsConfig
from harness.protocol.paths import Folders
from harness.supervisor.money import paid
from harness.supervisor.money.readings import Readings
from harness.views.cost_views import Costs
from harness.views.rows import Money
from harness.views.session_views import FleetView, SessionRow, counted, standing


class Ledger:
    """The ledger of a fleet at rest, read when it is first asked."""

    def __init__(self, folders: Folders) -> None:
        self._folders = folders
        self._problems: list[str] = []
        self._books: Readings | None = None
        self._looked = False

    def _readings(self) -> Readings | None:
        if not self._looked and self._folders.ledger.is_dir():
            try:
                self._books = Readings.at_rest(self._folders.ledger, self._caps)
            except (LogError, OSError, msgspec.DecodeError, NotReserved) as exc:
                self._problems.append(f"the ledger cannot be read, so the sessions' own logs are shown: {exc}")
        self._looked = True
        return self._books

    def _caps(self) -> CapsConfig:
        try:
            return config.load(self._folders).caps
        except config.ConfigError as exc:
            if str(exc) not in self._problems:
                self._problems.append(str(exc))
            return CapsConfig()

    def money(self, sid: str) -> Money:
        """One session's money; unknown without a ledger, then its log's own figures stand."""
        books = self._readings()
        return Money() if books is None else books.money(sid)

    def fleet(self, rows: Iterable[SessionRow]) -> FleetView:
        """The totals over these rows, and the fleet's money."""
        known = list(rows)
        books = self._readings()
        base = FleetView(spent_total_nano=sum(row.spent_nano for row in known))
        made = counted(paid.fleet(base, books), map(standing, known))
        return msgspec.structs.replace(made, warnings=[*self._problems])

    def costs(self, sessions: Iterable[tuple[SessionRow, Usage]]) -> Costs:
        """The reply of ``costs``."""
        known = list(sessions)
        return paid.costs(self.fleet(row for row, _ in known), known, self._readings())
