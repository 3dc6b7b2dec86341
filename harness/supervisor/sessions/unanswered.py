"""Asking something of a session whose keeper may not answer: refused at once when that is known, given up as soon as it
is found out.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Coroutine
from typing import TypeVar

from harness.domain.problems import NONE, Trouble
from harness.linux.proc import Identity, look
from harness.supervisor.base.errors import LinkLost, OpError
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.fleet.session import Session

_LONGEST_S = 86400.0
_AGAIN_S = 3.0
"""Seconds for a keeper that runs again to be found so: it is looked at every two."""
CODES = frozenset({"mute", "unsure"})
T = TypeVar("T")


def muteness(session: Session) -> Trouble:
    """Why the session's keeper takes nothing now, or no trouble."""
    return next((h for h in session.blocks.values() if h.kind in ("mute", "mute_disk")), NONE)


def _stopped(session: Session) -> bool:
    """True when the keeper is stopped at this moment."""
    k = session.state.keeper
    seen = look(Identity(k.pid, k.start, k.boot)) if k is not None else None
    return seen is not None and seen.stopped


async def answered(fleet: Fleet, session: Session, what: str, work: Coroutine[object, object, T]) -> T:
    """The result of ``work``, which asks the session's keeper.

    Raises OpError ``mute`` (nothing was sent) or ``unsure`` (it may still be done).
    """
    if muteness(session) and not _stopped(session):
        await fleet.until(lambda: not muteness(session), _AGAIN_S)
    if why := muteness(session):
        work.close()
        raise OpError(
            "mute",
            f"{session.name} cannot take this now, and nothing was sent: {why}",
            f"{why.words.next}; then ask again",
        )
    task = asyncio.ensure_future(work)
    told = asyncio.ensure_future(fleet.until(lambda: bool(muteness(session)), _LONGEST_S))
    try:
        await asyncio.wait({task, told}, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        why = muteness(session)
        raise OpError(
            "unsure",
            f"{what} was sent to {session.name}, whose log's process does not answer: {why.cause}",
            f"it may still be carried out, so look before you ask again: watchfloor show {session.sid}",
        )
    finally:
        told.cancel()
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError, OpError, LinkLost):
            await task
