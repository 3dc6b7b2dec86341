"""An ended session that is put away, held still while a person takes its work."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from harness.supervisor.base.errors import OpError
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.fleet.session import Session

_PUT_AWAY_S = 20.0


async def put_away(fleet: Fleet, session: Session) -> None:
    """Returns once an ended session has no worker and no keeper any more, which it still has for a moment when its
    last record is written.

    Raises OpError ``busy``.
    """
    if not await fleet.until(lambda: session.work.task is None and session.link is None, _PUT_AWAY_S):
        raise OpError("busy", not_yet(session), "try again in a moment")


def not_yet(session: Session) -> str:
    """What keeps an ended session from being put away, in words."""
    why = session.trouble or session.blocks.get("step") or "its end is being carried out"
    return f"{session.name} is not put away yet ({why})"


@asynccontextmanager
async def at_rest(fleet: Fleet, session: Session) -> AsyncIterator[None]:
    """Nothing else is done to it inside. The caller starts its worker afterwards, which puts its keeper away.

    Raises OpError ``not_ended``, ``busy``.
    """
    if not session.state.terminal:
        raise OpError(
            "not_ended",
            f"{session.name} has not ended, so its work may still change",
            f"wait, or stop it first: watchfloor stop {session.sid}",
        )
    await put_away(fleet, session)
    async with session.lock:
        if session.work.task is not None or session.removing or not session.state.terminal:
            raise OpError("busy", f"something else was done to {session.name} just now", "look at it, then try again")
        yield
