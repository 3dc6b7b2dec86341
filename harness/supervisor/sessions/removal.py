"""Removing an ended session: in good order where it can be examined, else only by force and saying what was lost. Its
log goes into the archive.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import NamedTuple

from harness.protocol import locks
from harness.protocol.paths import Folders
from harness.supervisor.base.errors import OpError
from harness.supervisor.base.threads import at_home
from harness.supervisor.calls.checkpoints import store_of
from harness.supervisor.calls.repository.pushed import pushed
from harness.supervisor.calls.session_folder import private_of
from harness.supervisor.fleet.session import Session
from harness.supervisor.sessions import archive
from harness.supervisor.sessions.taking.merging import merged
from harness.views.session_views import SessionRow
from harness.workspace.git.discard import discard
from harness.workspace.git.errors import DamagedWorktree, UnsavedWork, WorkspaceError
from harness.workspace.git.run import open_repository
from harness.workspace.tree import remove, worktrees
from harness.workspace.tree.leftovers import Leftovers

REMOVE_S = 300.0
"""Seconds that examining and removing a worktree may take."""


class Removed(NamedTuple):
    """Refs that keep work, and what could not be saved or stays, one phrase each; how many checkpoints went with it;
    True when its log and costs stay in the archive.
    """

    kept: list[str]
    lost: list[str]
    checkpoints: int = 0
    archived: bool = False


class Removal:
    """The removal of one session: `run` takes its worktree away and puts its folder into the archive, `forget` deletes
    what nobody needs there. ``row`` is what is told of it from then on.
    """

    def __init__(self, folders: Folders, session: Session, row: SessionRow) -> None:
        self._session = session
        self._row = row
        self._archive = folders.archive
        intent = session.state.intent
        repo, branch = (Path(intent.repo), intent.branch) if intent is not None else (None, "")
        self._left = Leftovers(folders.worktrees / session.sid, session.folder.git, repo, branch)
        self._doomed = session.folder.root.with_name(f".removing-{session.sid}")

    async def run(self, force_keep: bool, force: bool) -> Removed:
        """Raises OpError: ``busy`` while it has not ended, ``unsaved`` naming the work, ``unexamined`` when it cannot
        be looked at, ``archived`` when another one of its id was removed before.
        """
        session = self._session
        if session.foreign:
            return await self._from_here_only(force)
        into = self._archive / session.sid
        if await at_home(os.path.lexists, into):
            hint = f"to let go of that one: watchfloor purge {session.sid}"
            raise OpError("archived", f"a session {session.sid} is in the archive already: {into}", hint)
        if force and session.held and session.link is None and not await at_home(locks.held, session.folder.lock):
            session.leave()  # its log can say nothing any more, and nothing of it lives
        elif not session.state.terminal or session.link is not None or session.work.task is not None:
            raise OpError("busy", f"{session.name} has not ended", f"stop it first: watchfloor stop {session.sid}")
        try:
            removed = await session.do(
                "removing its worktree", REMOVE_S, lambda: self._worktree(force_keep, force), lasting=True
            )
        except UnsavedWork as exc:
            hint = f"push or merge it first, or keep it as a ref: watchfloor rm --keep-as-ref {session.sid}"
            raise OpError("unsaved", str(exc), hint) from exc
        except WorkspaceError as exc:
            raise await self._unexamined(exc) from exc
        gone = await self._checkpoints()
        session.leave()
        note = archive.note_of(self._row, removed.kept, removed.lost)
        await at_home(archive.put, session.folder.root, into, note)
        return removed._replace(checkpoints=gone, archived=True)

    async def _checkpoints(self) -> int:
        """Count its checkpoints, which go with its folder, and take what holds them out of the repository, once nothing
        else of it is left; a repository that cannot be asked holds nothing.
        """
        intent = self._session.state.intent
        if intent is None:
            return 0

        def drop() -> int:
            common = None
            with contextlib.suppress(WorkspaceError, OSError):
                common = open_repository(Path(intent.repo)).common
            with contextlib.suppress(WorkspaceError, OSError):
                return store_of(self._session).drop(common)
            return 0

        return await self._session.do("removing its checkpoints", REMOVE_S, drop, lasting=True)

    async def forget(self) -> None:
        """Delete what only served its work; what cannot be deleted now is, after another removal."""
        with contextlib.suppress(WorkspaceError):
            await self._session.do("removing its folder", REMOVE_S, self._clear, lasting=True)

    def _clear(self) -> None:
        if os.path.lexists(self._doomed):
            discard(self._doomed)
        archive.tidy(self._archive)

    async def _from_here_only(self, force: bool) -> Removed:
        """A copy of another session: its files here go, and the worktree, repository and branch it names are the
        original's.
        """
        session = self._session
        if not force:
            raise OpError(
                "unexamined",
                f"{session.name} is not ours: {session.foreign}",
                f"to remove it from here only: watchfloor rm --force {session.sid}",
            )
        session.leave()
        with contextlib.suppress(FileNotFoundError):
            await at_home(discard, self._left.worktree)
        await at_home(session.folder.root.rename, self._doomed)
        return Removed([], ["what this folder held of it; the session that it is a copy of keeps its own"])

    async def _unexamined(self, why: WorkspaceError) -> OpError:
        named = await at_home(self._left.named)
        what = (
            f"so nobody can say whether this is saved: {'; '.join(named)}" if named else "though nothing of it is left"
        )
        sid = self._session.sid
        hint = f"mend it and try again, or: watchfloor rm --force {sid} (what is in its worktree is deleted)"
        return OpError("unexamined", f"{self._session.name} cannot be examined ({why}), {what}", hint)

    def _worktree(self, force_keep: bool, force: bool) -> Removed:
        """Remove it (blocking). What can be kept is kept before anything is deleted by force."""
        session = self._session
        try:
            tree = worktrees.open_worktree(private_of(session))
            # whatever a record says, no other session's worktree is touched
            if os.path.realpath(tree.root) != os.path.realpath(self._left.worktree):
                raise DamagedWorktree(f"its record names the worktree {tree.root}, which is not its own")
            arrived = [*pushed(session.folder, tree.root), *merged(session.state.merging, tree)]
            return Removed(remove.remove(tree, session.sid, force_keep=force_keep or force, pushed=arrived), [])
        except (WorkspaceError, OSError, ValueError, RecursionError) as exc:
            if isinstance(exc, DamagedWorktree) and (kept := self._gone()) is not None:
                return Removed(kept, [])
            if not force:
                raise
            reason = str(exc) if isinstance(exc, WorkspaceError | OSError) else "what is there cannot be understood"
            return Removed([], [reason, *self._left.delete()])

    def _gone(self) -> list[str] | None:
        """The refs that keep its work when the worktree was never made, or a removal before us died at its very end;
        None when there is something to lose.
        """
        if self._session.state.created is None and not self._left.there:
            return []
        return None if os.path.lexists(self._left.worktree) else remove.removed(private_of(self._session))
