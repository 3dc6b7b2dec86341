"""What clients may do about alarms, and about sessions that have failed or stand still: put them off for a while."""

from __future__ import annotations

import time

from harness.domain.problems import HELD
from harness.eventlog.framing import LogError
from harness.events import types as t
from harness.projections.state.alarm_state import until
from harness.supervisor.base.errors import LinkLost, OpError
from harness.supervisor.fleet.session import Session
from harness.supervisor.serving.finding import Find
from harness.supervisor.serving.parts import Parts
from harness.supervisor.serving.server import Connection, Fields, Handler
from harness.views.replies import Snoozed
from harness.views.session_views import ERRORS

LONGEST_S = 7 * 86_400


class AlarmOps:
    """``snooze``: the alarms that are raised ring again when the time is over, if they still hold; what has failed or
    stands still comes back to its place in the queue.
    """

    def __init__(self, parts: Parts, find: Find) -> None:
        self._p = parts
        self._find = find

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return {"snooze": self.snooze}

    async def snooze(self, c: Connection, m: Fields) -> Snoozed:
        """Put a session's alarms off for so many ``seconds``.

        Raises OpError ``bad_request``, ``no_alarm`` when nothing is wrong, ``not_kept`` when its log takes no record.
        """
        session = await self._find(m)
        seconds = m.get("seconds")
        if isinstance(seconds, bool) or not isinstance(seconds, int) or not 1 <= seconds <= LONGEST_S:
            raise OpError("bad_request", "an alarm can be put off for a second to seven days")
        row = self._p.fleet.row(session)
        raised = list(session.state.alarms.raised)
        if row.group == ERRORS and not row.alarms:
            raised.append(HELD)
        if not raised:
            raise OpError("no_alarm", f"{session.name} has no alarm to put off", "see what is raised: watchfloor ls")
        when = until(time.time(), seconds)
        await self._write(session, t.AlarmSnoozed(alarms=raised, until=when, by=c.by))
        session.touch()
        return Snoozed(name=session.name, alarms=raised, until=when)

    async def _write(self, session: Session, body: t.AlarmSnoozed) -> None:
        """Into its log, also of a session that has ended, whose keeper is gone."""
        try:
            if session.state.terminal and not session.damaged:
                await self._awake(session, body)
            else:
                await session.append(body)
        except (LinkLost, LogError, OSError) as exc:
            raise OpError(
                "not_kept",
                f"{session.name} cannot be put off, because its log takes no record: {exc}",
                f"what is wrong with it says: watchfloor show {session.sid}",
            ) from exc
        finally:
            self._p.conductor.put_away(session)  # it got its keeper only for this

    async def _awake(self, session: Session, body: t.AlarmSnoozed) -> None:
        async with session.lock:  # its keeper is sent home before or after, and not between
            if session.removing:
                raise OpError("busy", f"{session.name} is being removed")
            if session.link is None:
                await self._p.keepers.take_up(session)
            await session.append(body)
