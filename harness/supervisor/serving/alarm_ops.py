"""What clients may do about alarms: put those of a session off for a while."""

from __future__ import annotations

import time

from harness.events import types as t
from harness.events.alarm_state import until
from harness.supervisor.errors import OpError
from harness.supervisor.serving.finding import Find
from harness.supervisor.serving.server import Connection, Handler, Reply

LONGEST_S = 7 * 86_400


class AlarmOps:
    """``snooze``: the alarms that are raised ring again when the time is over, if they still hold."""

    def __init__(self, find: Find) -> None:
        self._find = find

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return {"snooze": self.snooze}

    async def snooze(self, c: Connection, m: Reply) -> Reply:
        """``seconds`` from now. Raises OpError ``bad_request``, ``not_waiting`` when nothing is raised."""
        session = await self._find(m)
        seconds = m.get("seconds")
        if isinstance(seconds, bool) or not isinstance(seconds, int) or not 1 <= seconds <= LONGEST_S:
            raise OpError("bad_request", "an alarm can be put off for a second to seven days")
        raised = list(session.state.alarms.raised)
        if not raised:
            raise OpError("no_alarm", f"{session.name} has no alarm to put off", "see what is raised: watchfloor ls")
        when = until(time.time(), seconds)
        await session.append(t.AlarmSnoozed(alarms=raised, until=when, by=c.by))
        session.touch()
        return {"name": session.name, "alarms": raised, "until": when}
