"""What a supervisor does first: know every session, and have those that have not ended taken up."""

from __future__ import annotations

import asyncio
import sys
import traceback

import msgspec

from harness.eventlog.framing import LogError
from harness.protocol.paths import Folders
from harness.protocol.session_names import is_session_id
from harness.supervisor.base.errors import OpError
from harness.supervisor.base.threads import at_home
from harness.supervisor.endpoints.endpoint_gates import Gates
from harness.supervisor.fleet.fleet import Fleet, session_folders
from harness.supervisor.fleet.index import Index, mark_of
from harness.supervisor.fleet.session import Session
from harness.supervisor.fleet.subsystem_state import Indexed
from harness.supervisor.money.budget_service import BudgetService
from harness.supervisor.sessions.conductor import Conductor
from harness.supervisor.sessions.ending import unfinished
from harness.supervisor.upkeep.tasks import Upkeep

ADOPTION_BUDGET = 8.0


class FirstLook:
    """Every session by its index entry or its log."""

    def __init__(
        self,
        folders: Folders,
        fleet: Fleet,
        index: Index,
        budget_service: BudgetService,
        gates: Gates,
        conductor: Conductor,
        upkeep: Upkeep,
    ) -> None:
        self._folders = folders
        self._fleet = fleet
        self._index = index
        self._purse = budget_service
        self._gates = gates
        self._conductor = conductor
        self._upkeep = upkeep

    async def run(self) -> None:
        """Know every session: ended ones from the index where it is current, the others from their logs and keepers,
        all at once.
        """
        known = await self._index.open()
        names = await at_home(session_folders, self._folders.sessions)
        marks = await at_home(lambda: {n: mark_of(self._folders.session(n).log) for n in names if n in known})
        fresh: list[Session] = []
        for name in names:
            if not is_session_id(name):
                continue
            session = self._fleet.add(name)
            entry = known.get(name)
            if entry is not None and entry.mark == marks[name] and entry.mark:
                session.known_as(Indexed(entry.row, True))
                if self._purse.holding(name):
                    self._conductor.start(session)  # what it still holds is settled from its log
            else:
                if entry is not None:
                    session.known_as(Indexed(entry.row, False))
                fresh.append(session)
        for sid in known.keys() - self._fleet.sessions.keys():
            self._index.drop(sid)
        await asyncio.gather(*(self._look(s) for s in fresh))
        self._gates.begin()

    async def _look(self, session: Session) -> None:
        """Read one log; sessions that have not ended get their worker.

        Damage, and a defect of ours, stay with their session.
        """
        try:
            await session.read()
        except OpError as exc:
            session.unread(exc.message)
            self._upkeep.once(f"reading the log of session {session.sid}", lambda: self._look_again(session))
            return
        except (LogError, msgspec.DecodeError, OSError):
            return  # the session says so itself
        except Exception as exc:
            traceback.print_exc(file=sys.stderr)
            session.unreadable(f"a defect of Watchfloor met its log: {type(exc).__name__}: {exc}")
            return
        if session.foreign or session.aside is not None:
            return
        self._gates.recall(session)
        if not session.state.terminal or unfinished(session) or self._purse.holding(session.sid):
            self._conductor.start(session)

    async def _look_again(self, session: Session) -> None:
        """A log that did not answer at the start is taken up when it does: the others did not wait for it."""
        await session.readable()
        await self._look(session)
        session.touch()

    async def settled(self) -> None:
        """Wait until every living session has its keeper, within a budget: a mute one does not hold up the others."""

        def all_taken_up() -> bool:
            return not any(
                s.work.task is not None and s.link is None and not s.held and not s.trouble and not s.finished
                for s in self._fleet
            )

        await self._fleet.until(all_taken_up, ADOPTION_BUDGET)
