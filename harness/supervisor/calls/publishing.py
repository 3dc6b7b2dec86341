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


async def step(session: Session) -> None:
    """Bring in what the agent committed; a failure is a note, the next call tries again."""
    try:
        await session.do("publishing its commits", _PUBLISH_S, lambda: publish(open_worktree(private_of(session))))
    except (WorkspaceError, OSError) as exc:
        if out_of_space(exc):
            session.track.ran_command = True
            raise Later(_RETRY_SPACE, Trouble("no_space", f"its commits cannot be published: {exc}")) from exc
        if why := await ailing(session):
            session.track.ran_command = True  # it is still to be published
            raise Later(HELD_S, held_for(why)) from exc
        text = f"the agent's commits could not be brought into the repository: {exc}"
        if text != session.last_note:
            session.last_note = text
            await session.append(t.HarnessNote(level="warning", text=text, component="workspace"), cls="B")


async def last(session: Session) -> None:
    """The last publish of a session that has ended."""
    with contextlib.suppress(WorkspaceError, OSError):
        await session.do("publishing its commits", _PUBLISH_S, lambda: publish(open_worktree(private_of(session))))
