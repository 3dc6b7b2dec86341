"""What the agent committed is brought into the repository."""

from __future__ import annotations

import contextlib

from harness.events import types as t
from harness.events.trouble import Trouble
from harness.supervisor.calls.ground import HELD_S, ailing, held_for, private_of
from harness.supervisor.errors import Later, out_of_space
from harness.supervisor.fleet.session import Session
from harness.workspace.errors import WorkspaceError
from harness.workspace.private import publish
from harness.workspace.worktrees import open_worktree

_RETRY_SPACE = 5.0
_PUBLISH_S = 120.0
"""Seconds that reading the worktree may take."""


def owed(session: Session) -> None:
    """There may be something to bring in that no call will bring."""
    session.track.ran_command = True


async def step(session: Session) -> None:
    """Bring in what the agent committed, when it may have; a failure is a note, the next call tries again."""
    if not session.track.ran_command:
        return
    session.track.ran_command = False
    try:
        await session.do("publishing its commits", _PUBLISH_S, lambda: publish(open_worktree(private_of(session))))
    except (WorkspaceError, OSError) as exc:
        if out_of_space(exc):
            owed(session)
            raise Later(_RETRY_SPACE, Trouble("no_space", f"its commits cannot be published: {exc}")) from exc
        if why := await ailing(session):
            owed(session)
            raise Later(HELD_S, held_for(why)) from exc
        text = f"the agent's commits could not be brought into the repository: {exc}"
        if text != session.published.told:
            session.published.told = text
            await session.append(t.HarnessNote(level="warning", text=text, component="workspace"), cls="B")


async def last(session: Session) -> None:
    """The last publish of a session that has ended."""
    with contextlib.suppress(WorkspaceError, OSError):
        await session.do("publishing its commits", _PUBLISH_S, lambda: publish(open_worktree(private_of(session))))
