"""What a session's plan tab shows: the plan as the supervisor has it by the log, or the checks of a session without
one, then the files of the worktree, where that is on our disk; of notes in a file that most projects have anyway, what
the session wrote.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Protocol, TypeVar

from harness.protocol.client import SupervisorError, Unreachable
from harness.views.plan_views import PlanShown
from harness.views.replies import Compared
from harness.views.session_views import SessionRow
from widgets.diff.patch_files import files_of
from widgets.plan.plan_board import as_file, checks_as_file
from widgets.plan.plan_view import NOTES, PlanFile, Stamp, notes, read, stamps

T = TypeVar("T")


class Calls(Protocol):
    """Whoever carries a request to the supervisor."""

    async def reply(self, kind: type[T], op: str, **arguments: object) -> T:
        """The reply, as what it is. Raises SupervisorError, Unreachable."""


class PlanReading:
    """Looks again at what changed since the last look, one look at a time."""

    def __init__(self) -> None:
        self._busy = False
        self._seq = -1
        self._told: PlanShown | None = None
        self._stamps: dict[str, Stamp] = {}
        self._files: list[PlanFile] = []
        self._notes: list[PlanFile] = []

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
            changed = await self._read(row, supervisor) if row.worktree else False
        finally:
            self._busy = False
        if not asked and not changed:
            return None
        if self._told is None:
            return self._files
        plan = self._told.plan
        if plan is None:
            return [checks_as_file(self._told.checks), *self._files]
        # The file of the plan says less than the log does of it.
        return [as_file(plan), *(file for file in self._files if file.name != plan.path)]

    async def _ask(self, row: SessionRow, supervisor: Calls) -> bool:
        if row.seq == self._seq:
            return False
        try:
            found = await supervisor.reply(PlanShown, "plan", sid=row.sid)
        except (SupervisorError, Unreachable):
            return False  # the banner says that nobody answers, and what is shown stays until somebody does
        self._seq = row.seq
        changed = found != self._told
        self._told = found
        return changed

    async def _read(self, row: SessionRow, supervisor: Calls) -> bool:
        folder = Path(row.worktree)
        found = await asyncio.to_thread(stamps, folder)
        if found == self._stamps:
            return False
        self._files = await asyncio.to_thread(read, folder, [name for name in found if name != NOTES])
        stamp = found.get(NOTES)
        if stamp != self._stamps.get(NOTES):
            added = await self._written(row.sid, supervisor) if stamp is not None else []
            self._notes = [notes(added, stamp.mtime_ns / 1e9)] if stamp is not None and added else []
            if added is None:
                del found[NOTES]  # the next look asks again
        self._files += self._notes
        self._stamps = found
        return True

    async def _written(self, sid: str, supervisor: Calls) -> list[str] | None:
        """The lines of the notes that are in no commit from before the session; None when that cannot be told now."""
        try:
            found = await supervisor.reply(Compared, "diff", sid=sid)
        except (SupervisorError, Unreachable):
            return None
        patch = next((file for file in files_of(found.patch, []) if file.path == NOTES), None)
        return [row.text[1:] for row in patch.rows if row.role == "add"] if patch is not None else []
