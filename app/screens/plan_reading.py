"""What a session's plan tab shows: the plan as the supervisor has it by the log, then the files of the worktree, where
that is on our disk.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Protocol

import msgspec

from harness.events.plan_views import PlanBoard
from harness.events.views import SessionRow
from harness.protocol.client import SupervisorError, Unreachable
from widgets.plan_board import as_file
from widgets.plan_view import PlanFile, Stamp, read, stamps


class Calls(Protocol):
    """Whoever carries a request to the supervisor."""

    async def call(self, op: str, **arguments: Any) -> dict[str, Any]:
        """The reply. Raises SupervisorError, Unreachable."""


class PlanReading:
    """Looks again at what changed since the last look, one look at a time."""

    def __init__(self) -> None:
        self._busy = False
        self._seq = -1
        self._board: PlanBoard | None = None
        self._stamps: dict[str, Stamp] = {}
        self._files: list[PlanFile] = []

    def forget(self) -> None:
        """The next look reads everything."""
        self._seq = -1
        self._stamps = {}

    async def look(self, row: SessionRow, supervisor: Calls) -> list[PlanFile] | None:
        """What there is to show; None when nothing changed."""
        if self._busy:
            return None
        self._busy = True
        try:
            asked = await self._ask(row, supervisor)
            changed = await self._read(Path(row.worktree)) if row.worktree else False
        finally:
            self._busy = False
        if not asked and not changed:
            return None
        if self._board is None:
            return self._files
        # The file of the plan says less than the log does of it.
        return [as_file(self._board), *(file for file in self._files if file.name != self._board.path)]

    async def _ask(self, row: SessionRow, supervisor: Calls) -> bool:
        if row.seq == self._seq or not row.plan_total:
            return False
        try:
            reply = await supervisor.call("plan", sid=row.sid)
            found = msgspec.convert(reply["plan"], PlanBoard | None)
        except (SupervisorError, Unreachable, msgspec.ValidationError, KeyError):
            return False  # the banner says that nobody answers, and what is shown stays until somebody does
        self._seq = row.seq
        changed = found != self._board
        self._board = found
        return changed

    async def _read(self, folder: Path) -> bool:
        found = await asyncio.to_thread(stamps, folder)
        if found == self._stamps:
            return False
        self._files = await asyncio.to_thread(read, folder, list(found))
        self._stamps = found
        return True
