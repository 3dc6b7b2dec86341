"""How an operation finds the session that a message names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from harness.eventlog.framing import LogError
from harness.supervisor.base.errors import OpError
from harness.supervisor.base.threads import at_home
from harness.supervisor.fleet.session import Session
from harness.supervisor.serving.parts import Parts, text_of
from harness.supervisor.serving.server import Fields
from harness.views import archived

Find = Callable[[Fields], Awaitable[Session]]
"""The session of a message, its log read. Raises OpError: nobody has that name, or its log is damaged."""


async def look_up(parts: Parts, m: Fields) -> Session:
    """The session that ``sid`` names, its log read where it can be; a damaged one too. Raises OpError."""
    named = text_of(m, "sid")
    try:
        session = parts.fleet.find(named)
    except OpError as exc:
        if exc.code != "not_found":
            raise
        gone = await at_home(archived.said_of, parts.folders.archive, named)
        if gone is None:
            raise
        raise OpError("not_found", *gone) from None
    if not session.loaded and not session.damaged:
        try:
            await session.read()
        except (LogError, msgspec.DecodeError):
            session.touch()
    return session


async def find(parts: Parts, m: Fields) -> Session:
    """`look_up`, refusing a damaged one. Raises OpError."""
    session = await look_up(parts, m)
    if session.damaged:
        raise damaged(session)
    return session


def damaged(session: Session) -> OpError:
    """What is said to somebody who wants more of a damaged session than it can give."""
    return OpError(
        "damaged",
        session.damaged,
        "it can be looked at and stopped; to remove it with what is in its worktree: watchfloor rm --force"
        f" {session.sid}",
    )
