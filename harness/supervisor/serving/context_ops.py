"""What clients may ask about a session's context."""

from __future__ import annotations

from harness.events import types as t
from harness.supervisor.errors import OpError
from harness.supervisor.fleet.session import Session


async def want_compaction(session: Session, by: t.By) -> None:
    """Put on record that a person wants the context compacted before the next turn; wanted twice, it is done once.

    Raises OpError ``ended``.
    """
    s = session.state
    if s.terminal or s.desired == "stopped":
        raise OpError("ended", f"{session.name} has ended; its context is sent to nobody")
    if not s.context.wanted:
        await session.append(t.ContextWanted(by=by))
