"""Having a call that is judged carried out by its session's keeper, within what the configuration allows now."""

from __future__ import annotations

from typing import Any

from harness.events import types as t
from harness.events.call_states import CallEnd
from harness.protocol.config import Config
from harness.supervisor.fleet.session import Session


async def begin(session: Session, config: Config, call_id: str) -> dict[str, Any]:
    """Start it; the keeper's answer says what was ``stale`` or ``unprotected``, and then nothing was started.

    Raises OpError, LinkLost.
    """
    return await session.keeper().call(
        "execute",
        wait=None,
        call_id=call_id,
        limits=config.limits.to_wire(),
        undo_limits=config.undo.to_wire(),
        jobs=config.jobs.to_wire(),
    )


async def to_its_end(session: Session, config: Config, call_id: str, wait_s: float) -> None:
    """For one that nobody is asked about again: what cannot be started is refused on record, and its end is waited for
    at most so many seconds. Raises OpError, LinkLost.
    """
    reply = await begin(session, config, call_id)
    if why := reply.get("unprotected") or reply.get("stale"):
        await session.append(t.ToolEnded(call_id=call_id, status=CallEnd.REFUSED, preview=f"not run: {why}"))
    await session.until(lambda: call_id not in session.state.calls.open, wait_s)
