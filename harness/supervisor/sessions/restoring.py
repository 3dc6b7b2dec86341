"""Checkpoints as a person has them: made by hand, gone back to, gone on from. A session that has ended gets its keeper
back for as long as it takes.
"""

from __future__ import annotations

import msgspec

from harness.events import types as t
from harness.keeper.loop.requests import StatesKept, UndoCall
from harness.projections.state.checkpoints import Checkpoint, Due
from harness.supervisor.base import ids
from harness.supervisor.base.errors import OpError
from harness.supervisor.base.settings import Settings
from harness.supervisor.calls import checkpoints
from harness.supervisor.calls.repository import publishing
from harness.supervisor.fleet.session import Session
from harness.supervisor.sessions.begin import forking
from harness.supervisor.sessions.begin.launch import Launcher
from harness.supervisor.sessions.keepers import Keepers
from harness.views.undo_views import Restored
from harness.workspace.git.errors import WorkspaceError

MAX_LABEL = 200
NOT_KEPT = "not_kept"
"""Code of the refusal when git cannot keep a state."""


class Restoring:
    """Answers the ops that make a checkpoint, bring one back, and begin a session from one."""

    def __init__(self, keepers: Keepers, settings: Settings, launcher: Launcher) -> None:
        self._keepers = keepers
        self._settings = settings
        self._launcher = launcher

    async def make(self, session: Session, label: str, by: t.By) -> Checkpoint:
        """Keep the present state. Raises OpError: ``busy`` while a call is at work."""
        async with session.lock:
            return await self.made(session, Due("hand", label), by)

    async def made(self, session: Session, why: Due, by: t.By, spare: str = "") -> Checkpoint:
        """The same for whoever holds the session's lock."""
        await self._at_work(session)
        try:
            name = await checkpoints.make(session, why, self._settings.config.checkpoints, by, spare)
        except WorkspaceError as exc:
            raise OpError(NOT_KEPT, f"the state of {session.name} cannot be kept: {exc}") from exc
        return self.find(session, name)

    async def restore(self, session: Session, name: str, by: t.By) -> Restored:
        """Bring the worktree, its git state and the plan to what they were; what is there now is kept first. Raises
        OpError: ``busy``, ``not_found``, ``expired``, ``not_undone``.
        """
        async with session.lock:
            await self._at_work(session)
            one = self.find(session, name)
            await self._still_kept(session, one)
            before = await self.made(session, Due("restore", f"before {one.id} was restored"), by, one.id)
            undo_id = ids.undo_id()
            wanted = UndoCall(undo_id, one.id, one.snapshot, msgspec.to_builtins(by))
            done = await session.keeper().ask(wanted, None)
            if done.error:
                raise OpError(
                    "not_undone",
                    f"not everything could be brought back: {done.error}",
                    f"repeat it: watchfloor restore {session.sid} {one.id}",
                )
            await session.until(lambda: session.state.last_undo == undo_id)
            try:
                await checkpoints.finish_restoring(session)
            except WorkspaceError as exc:
                raise OpError("not_undone", f"the plan could not be brought back yet: {exc}") from exc
            publishing.owed(session)
            session.touch()
        return Restored(
            checkpoint_id=one.id,
            undo_id=undo_id,
            before=before.id,
            restored=done.written,
            removed=done.removed,
            refused=list(done.refused),
            refused_count=done.refused_count,
        )

    async def fork(self, parent: Session, at: str, name: str, goal: str, by: t.By) -> Session:
        """Begin a session from a checkpoint, by default from the work as it is now. Raises OpError: ``busy``,
        ``not_found``, ``ended``, and what a launch is refused for.
        """
        async with parent.lock:
            intent = parent.state.intent
            if intent is None or parent.state.created is None:
                raise OpError("not_ready", f"{parent.name} has no worktree yet, so nothing can begin from it")
            # what a person changed in the worktree is in no record, so only a look at it knows
            one = self.find(parent, at) if at else await self.made(parent, Due("fork", ""), by)
            intent = msgspec.structs.replace(intent, checks=list(parent.state.checks), caps=parent.state.caps)
            origin = await forking.origin(parent, one)
            plan = await forking.plan_text(parent, origin)
        return await self._launcher.fork(intent, name, goal, origin, plan)

    @staticmethod
    def find(session: Session, name: str) -> Checkpoint:
        """The checkpoint of that id. Raises OpError ``not_found``."""
        one = session.state.checkpoints.find(name)
        if one is None:
            raise OpError(
                "not_found",
                f"{session.name} has no checkpoint {name}" if name else f"{session.name} has no checkpoint yet",
                f"list them: watchfloor checkpoints {session.sid}",
            )
        return one

    @staticmethod
    async def _still_kept(session: Session, one: Checkpoint) -> None:
        kept = await session.keeper().ask(StatesKept(), None)
        if all(mark.id != one.snapshot for mark in kept.marks):
            raise OpError(
                "expired",
                f"the whole state of checkpoint {one.id} is no longer kept; its files are in commit {one.commit[:12]}",
                f"go on from it in a new session: watchfloor fork {session.sid} --at {one.id}",
            )

    async def _at_work(self, session: Session) -> None:
        if session.link is None and session.state.terminal:
            await self._keepers.take_up(session)
        session.keeper()
