"""What the agent committed is brought into the repository."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

from harness.events import types as t
from harness.supervisor.base.errors import Later, LinkLost, OpError, for_now, locked
from harness.supervisor.calls.session_folder import HELD_S, ailing, held_for, private_of
from harness.supervisor.fleet.session import Session
from harness.workspace.git.errors import GitFailed, WorkspaceError
from harness.workspace.private_git import own_refs
from harness.workspace.private_git.private_gitdir import agent_branch, publish
from harness.workspace.tree import scan
from harness.workspace.tree.worktrees import open_worktree

_CANNOT = "its commits cannot be published"
_NAMED = 20
"""Commits that one record names."""
_FILES = 50
"""Files that it names."""
_END_S = 60.0
"""Seconds that an end waits for another git, or for room."""
_PUBLISH_S = 120.0
"""Seconds that reading the worktree may take."""


def owed(session: Session) -> None:
    """There may be something to bring in that no call will bring."""
    session.track.ran_command = True


async def step(session: Session) -> None:
    """Bring in what the agent committed, when it may have; a failure is a note, the next call tries again.

    Another git at work there holds nobody up: the commits are safe where they are.
    """
    if not session.track.ran_command:
        return
    session.track.ran_command = False
    try:
        seen = session.state.head
        moved = await session.do("publishing its commits", _PUBLISH_S, lambda: _brought(private_of(session), seen))
    except (WorkspaceError, OSError) as exc:
        busy = locked(exc)
        if busy:
            owed(session)
        elif later := for_now(exc, _CANNOT):
            owed(session)
            raise later from exc
        if not busy and (why := await ailing(session)):
            owed(session)
            raise Later(HELD_S, held_for(why)) from exc
        text = f"the agent's commits could not be brought into the repository: {exc}"
        if text != session.published.told:
            session.published.told = text
            await session.append(t.HarnessNote(level="warning", text=text, component="workspace"), cls="B")
        return
    if moved is not None:
        await session.append(moved, cls="B")


def _brought(private: Path, seen: str) -> t.WorkCommitted | None:
    """Bring in what the agent committed; what that made of its branch, None when it stands where it was ``seen``."""
    tree = open_worktree(private)
    head = publish(tree).head
    if not seen or head == seen:
        return None
    try:
        new, more = scan.commits_since(tree, seen, head, _NAMED)
        files = scan.files_between(tree, seen, head, _FILES)
    except GitFailed:  # what it stood on before is not there any more
        return t.WorkCommitted(head=head, before=seen)
    return t.WorkCommitted(head=head, before=seen, commits=[t.Commit(*one) for one in new], more=more, files=files)


async def _say_what_stays(session: Session) -> None:
    """On which branch of its own the agent ended, and what only its own refs have: a person looks at the session's
    branch.
    """
    text = await session.do("looking at its own branches", _PUBLISH_S, lambda: _stays(private_of(session)))
    if text and text != session.published.told:
        session.published.told = text
        await session.append(t.HarnessNote(level="info", text=text, component="workspace"), cls="B")


def _stays(private: Path) -> str:
    tree = open_worktree(private)
    on = agent_branch(tree)
    told = [f"the agent ended on its own branch {on}, whose commits are on {tree.branch}"] if on else []
    if left := own_refs.only_there(tree):
        told.append(f"only its own refs have the commits of {own_refs.told(left)}; rm asks before they go")
    return "; ".join(told)


async def _held_back(session: Session, why: str) -> None:
    if session.state.held_back != why:
        with contextlib.suppress(OpError, LinkLost):
            await session.append(t.WorkHeldBack(why=why))


def hurry(session: Session) -> None:
    """Everything is being stopped: its end waits for nothing."""
    session.published.until = 0.0


async def last(session: Session) -> None:
    """The last publish of a session that has ended; what cannot be recorded any more is by the next one. Raises Later
    for what ends by itself, for a while: whoever takes the work publishes it too.
    """
    try:
        with contextlib.suppress(OpError, LinkLost):
            seen = session.state.head
            moved = await session.do("publishing its commits", _PUBLISH_S, lambda: _brought(private_of(session), seen))
            if moved is not None:
                await session.append(moved, cls="B")
            await _say_what_stays(session)
    except (WorkspaceError, OSError) as exc:
        known = session.published
        if known.until is None:
            known.until = time.monotonic() + _END_S
        if later := for_now(exc, _CANNOT):
            if time.monotonic() < known.until:
                raise later from exc
            await _held_back(session, str(exc))
    session.published.until = None
