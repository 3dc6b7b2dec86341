"""The harness's own ground under a session: where it is, and whether it stands."""

from __future__ import annotations

from pathlib import Path

from harness.domain.problems import Trouble
from harness.linux.scarce import scarce
from harness.supervisor.base.errors import Later, for_now
from harness.supervisor.fleet.session import Session
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.tree import health

HELD_S = 10.0
"""Seconds after which the ground of a held session is looked at again."""
_LOOK_S = 15.0


def private_of(session: Session) -> Path:
    """The private git directory of a session."""
    return session.folder.git / "private"


async def ailing(session: Session) -> str:
    """What of the harness's own is broken under this session, in words; empty when nothing is.

    Raises Later while the machine has nothing to look with.
    """
    try:
        return await session.do("seeing whether its ground stands", _LOOK_S, lambda: health.ailing(private_of(session)))
    except WorkspaceError as exc:
        if scarce(exc):
            raise held(exc) from exc
        return str(exc)


def held(exc: Exception) -> Later:
    """How long a session waits whose ground could not be looked at."""
    return for_now(exc, "its ground cannot be seen") or Later(HELD_S, held_for(str(exc)))


def held_for(why: str) -> Trouble:
    """The trouble of a session that waits for its ground to be mended."""
    return Trouble("ground", why)
