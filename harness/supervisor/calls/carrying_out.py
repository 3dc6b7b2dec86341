"""Having a call that is judged carried out by its session's keeper, within what the configuration allows now."""

from __future__ import annotations

import functools

from harness.domain.calls.call_states import CallEnd
from harness.events import types as t
from harness.keeper.loop.requests import CallBegun, Execute, JobLimits
from harness.protocol.config.config import Config
from harness.protocol.config.sections import LimitsConfig, UndoConfig
from harness.sandbox import limits as call_limits
from harness.supervisor.fleet.session import Session
from harness.vault import limits as undo_limits
from harness.vault.limits import VaultLimits


@functools.lru_cache(maxsize=1)
def _limits_of(section: LimitsConfig) -> call_limits.Limits:
    return call_limits.from_wire(section.to_wire())


@functools.lru_cache(maxsize=1)
def undo_limits_of(section: UndoConfig) -> VaultLimits:
    """What ``[undo]`` says, as a keeper takes it."""
    return undo_limits.from_wire(section.to_wire())


async def begin(session: Session, config: Config, call_id: str) -> CallBegun:
    """Start it; the keeper's answer says what was ``stale`` or ``unprotected``, and then nothing was started.

    Raises OpError, LinkLost.
    """
    jobs = JobLimits(config.jobs.at_once, config.jobs.grace)
    wanted = Execute(call_id, _limits_of(config.limits), undo_limits_of(config.undo), jobs)
    return await session.keeper().ask(wanted, None)


async def to_its_end(session: Session, config: Config, call_id: str, wait_s: float) -> None:
    """For one that nobody is asked about again: what cannot be started is refused on record, and its end is waited for
    at most so many seconds. Raises OpError, LinkLost.
    """
    begun = await begin(session, config, call_id)
    if why := begun.unprotected or "; ".join(begun.stale):
        await session.append(t.ToolEnded(call_id=call_id, status=CallEnd.REFUSED, preview=f"not run: {why}"))
    await session.until(lambda: call_id not in session.state.calls.open, wait_s)
