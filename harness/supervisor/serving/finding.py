"""How an operation finds the session that a message names."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec

from harness.events import archived
from harness.events.framing import LogError
from harness.supervisor.errors import OpError
from harness.supervisor.fleet.session import Session
from harness.supervisor.serving.parts import Parts, text_of
from harness.supervisor.serving.server import Fields
from harness.supervisor.threads import at_home

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
        raise await at_home(_removed, parts.folders.archive, named) or exc from None
    if not session.loaded and not session.damaged:
        try:
            await session.read()
        except (LogError, msgspec.DecodeError):
            session.touch()
    return session


def _removed(archive: Path, named: str) -> OpError | None:
    """What is said of a session that was removed; None when there is none of that name, or several. Blocking."""
    found = archived.fitting(archived.listed(archive), named)
    if len(found) != 1:
        return None
    held = f"; its work is held by {', '.join(found[0].kept[:3])}" if found[0].kept else ""
    return OpError(
        "not_found",
        f"{found[0].name or named} was removed, so its worktree is gone{held}",
        f"its log stays: watchfloor logs {found[0].sid}",
    )


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
