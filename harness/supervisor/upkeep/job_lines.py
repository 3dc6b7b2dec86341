"""The newest line that a running job printed, for the rows that somebody looks at. While nobody looks, nothing is
read.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from harness.domain.text.output_lines import last
from harness.executor import job_log
from harness.supervisor.base.errors import OpError
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.fleet.session import Session

_TAIL = 2048
"""Bytes at the end of an output that are read for its newest line."""
_LINE = 160
_LOOK_S = 5.0
_TURN_S = 2.0


class JobLines:
    """Keeps `Printed` of all sessions fresh enough to look at."""

    def __init__(self, fleet: Fleet, looked_at: Callable[[], bool]) -> None:
        self._fleet = fleet
        self._looked_at = looked_at

    async def run(self) -> None:
        """Look every two seconds, until cancelled."""
        while True:
            await asyncio.sleep(_TURN_S)
            if self._looked_at():
                for session in [s for s in self._fleet if s.loaded and s.state.jobs.running]:
                    await self._look(session)

    async def _look(self, session: Session) -> None:
        with contextlib.suppress(
            OpError, OSError
        ):  # its output is gone, or its disk does not answer: what was seen stays
            found = await session.look("what its jobs print", _LOOK_S, lambda: printed(session))
            if found != session.printed.line:
                session.printed.line = found
                session.touch()


def printed(session: Session) -> str:
    """The newest line of the newest job that printed one (blocking)."""
    for name in reversed(list(session.state.jobs.running)):
        if line := last(job_log.tail(session.folder.jobs / name, _TAIL).data):
            return f"{line[:_LINE]}…" if len(line) > _LINE else line
    return ""
