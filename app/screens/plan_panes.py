"""Brings plans into the panes that show one."""

from __future__ import annotations

from collections.abc import Coroutine, Iterable

from app.client.snapshot import Snapshot
from app.screens.plan_reading import Calls, PlanReading
from harness.views.session_views import SessionRow
from widgets.panes.plan_pane import PlanPane


class PlanPanes:
    """A look for each pane with a plan, kept as long as the pane shows that session."""

    def __init__(self) -> None:
        self._readings: dict[object, PlanReading] = {}

    def looks(
        self, panes: Iterable[tuple[str, PlanPane]], snapshot: Snapshot, supervisor: Calls
    ) -> list[Coroutine[object, object, None]]:
        """What is to be done for these (session, widget), one a pane."""
        shown = [(row, pane) for sid, pane in panes if (row := snapshot.rows.get(sid))]
        self._readings = {pane.of: self._readings.get(pane.of) or PlanReading() for _, pane in shown}
        return [_look(self._readings[pane.of], row, pane, supervisor) for row, pane in shown]


async def _look(reading: PlanReading, row: SessionRow, pane: PlanPane, supervisor: Calls) -> None:
    of = pane.of
    files = await reading.look(row, supervisor)
    if files is not None and pane.of is of and pane.is_attached:
        pane.set_files(files)
