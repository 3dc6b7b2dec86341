"""Looks every few seconds whether a session that runs wants a person's look, and puts on record what is owed."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable

from harness.protocol.config.sections import AlarmsConfig
from harness.supervisor.base.errors import LinkLost, OpError
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.fleet.session import Session
from harness.views.alarms import AlarmLimits, changes

_PAUSE_S = 10.0
_LEAST_PAUSE_S = 0.5


class AlarmWatch:
    """Raises and clears the alarms of all sessions that have a log to write to."""

    def __init__(self, fleet: Fleet, settings: Callable[[], AlarmsConfig]) -> None:
        self._fleet = fleet
        self._settings = settings
        self._rang: dict[str, int] = {}
        self._put_off: set[str] = set()

    async def run(self) -> None:
        """Look, until cancelled."""
        while True:
            set_to = self._settings()
            limits = AlarmLimits(set_to.silent, set_to.no_progress_usd, set_to.minute_usd, set_to.same_failure)
            now = time.time()
            for session in list(self._fleet):
                if session.loaded and not session.foreign and not session.damaged:
                    await self._look(session, now, limits)
                self._remind(session)
            await asyncio.sleep(max(_LEAST_PAUSE_S, min(_PAUSE_S, (limits.silent_s or 4 * _PAUSE_S) / 4)))

    def _remind(self, session: Session) -> None:
        """What was put off until now is shown as it is again."""
        known = session.indexed.row.put_off if session.indexed is not None else ""
        if not (session.state.alarms.put_off if session.loaded else known):
            self._put_off.discard(session.sid)
        elif self._fleet.row(session).put_off:
            self._put_off.add(session.sid)
        elif session.sid in self._put_off:
            self._put_off.remove(session.sid)
            session.touch()

    async def _look(self, session: Session, now: float, limits: AlarmLimits) -> None:
        at_work = session.track.at_work(session.state)
        owed = [] if session.state.terminal else changes(session.state, now, limits, at_work)
        if session.link is not None and owed:
            with contextlib.suppress(LinkLost, OpError):  # a log that takes nothing now: the next look finds the same
                await session.append(*owed)
        rings = len(session.state.alarms.ringing(now))
        if self._rang.get(session.sid, 0) != rings:
            session.touch()  # what was put off rings again
        if rings:
            self._rang[session.sid] = rings
        else:
            self._rang.pop(session.sid, None)
