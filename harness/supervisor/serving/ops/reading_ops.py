"""What clients may read of a session: its state, its diff, its log and payloads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import msgspec

from harness.checks import steering
from harness.domain.steered import Steered
from harness.protocol.paths import SessionFolder
from harness.supervisor.base.errors import OpError
from harness.supervisor.calls.session_folder import private_of
from harness.supervisor.calls.work import results
from harness.supervisor.fleet.fleet import work_of
from harness.supervisor.serving import log_reading
from harness.supervisor.serving.finding import Find, look_up
from harness.supervisor.serving.parts import Parts, text_of
from harness.supervisor.serving.server import Connection, Fields, Handler
from harness.views.replies import Compared, FileDiff, LogPiece, PayloadPiece, SessionShown
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.protected import inputs_since_start
from harness.workspace.tree import worktrees
from harness.workspace.tree.diff import Diff
from harness.workspace.tree.diff import diff as workspace_diff

_READ_S = 20.0
_DIFF_S = 25.0
"""Seconds that a diff may take; a client waits half a minute for it."""
T = TypeVar("T")


class ReadingOps:
    """``session``, ``diff``, ``read``, ``blob``."""

    def __init__(self, parts: Parts, find: Find) -> None:
        self._p = parts
        self._find = find

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return {"session": self.session, "diff": self.diff, "read": self.read, "blob": self.blob}

    async def session(self, c: Connection, m: Fields) -> SessionShown:
        """One session: its row, state and open requests."""
        p = self._p
        session = await look_up(p, m)
        decidable = [] if session.foreign or session.damaged else list(session.state.approvals)
        views = [await p.approvals.view(session, a) for a in decidable]
        return SessionShown(
            row=p.fleet.row(session),
            state=msgspec.to_builtins(session.state),
            approvals=views,
            folder=str(session.folder.root),
        )

    async def diff(self, c: Connection, m: Fields) -> Compared:
        """A session's work, compared with where it began."""
        session = await self._find(m)
        of = work_of(session)
        checks = list(session.state.checks)
        rules = results.rules_of(session.state)

        def look() -> tuple[Diff, list[Steered]]:
            tree = worktrees.open_worktree(private_of(session))
            made = workspace_diff(tree)
            return made, [*steering.places(made.patch, checks), *inputs_since_start.facts(tree, checks, rules)]

        try:
            found, touches = await session.look("its diff", _DIFF_S, look)
        except (WorkspaceError, OSError) as exc:
            raise OpError("no_worktree", f"there is no diff: {exc}") from exc
        if session.loaded and (found.extent != session.extent.found or of != session.extent.found_of):
            session.extent.take(found.extent, of)  # what a person did by hand is in no record
            session.shown_anew()
        files = [FileDiff(f.path, f.status, f.added, f.removed) for f in found.files]
        return Compared(files=files, patch=found.patch, truncated=found.truncated, seen=found.seen, touches=touches)

    async def read(self, c: Connection, m: Fields) -> LogPiece:
        """Raw records of a log."""
        from_seq = log_reading.bounded(m, "from_seq", 0, 0)
        most = log_reading.bounded(m, "most_bytes", log_reading.MOST_BYTES, 1, log_reading.MOST_BYTES)
        return await self._piece(m, "its log", lambda folder: log_reading.lines(folder, from_seq, most))

    async def blob(self, c: Connection, m: Fields) -> PayloadPiece:
        """A piece of a payload that a record names."""
        sha = text_of(m, "sha", 64)
        offset = log_reading.bounded(m, "offset", 0, 0)
        most = log_reading.bounded(m, "most", log_reading.MOST_BYTES, 1, log_reading.MOST_BYTES)
        return await self._piece(m, "a payload", lambda folder: log_reading.blob(folder, sha, offset, most))

    async def _piece(self, m: Fields, what: str, read: Callable[[SessionFolder], T]) -> T:
        session = self._p.fleet.find(text_of(m, "sid"))
        try:
            return await session.look(what, _READ_S, lambda: read(session.folder))
        except (WorkspaceError, OSError) as exc:
            raise OpError("unreadable", f"it cannot be read now: {exc}") from exc
