"""What clients may ask about scores: the figures of one session, or of all, and what one made."""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path

import msgspec

from harness.eventlog import reader
from harness.eventlog.framing import LogError
from harness.events import types as t
from harness.projections import score as scores
from harness.supervisor.base.errors import OpError
from harness.supervisor.base.threads import at_home
from harness.supervisor.calls.session_folder import private_of
from harness.supervisor.fleet.session import Session
from harness.supervisor.serving.finding import Find
from harness.supervisor.serving.parts import Parts, text_of
from harness.supervisor.serving.server import Connection, Fields, Handler
from harness.views import archived
from harness.views.score_views import Artifacts, Scores, SessionScore
from harness.workspace.export import artifacts
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.tree.worktrees import open_worktree

_READ_S = 25.0
"""Seconds that counting a log may take; a client waits half a minute for it."""
_GONE = "not_found"


class ScoreOps:
    """``score``. A log that was counted once is counted on from there."""

    def __init__(self, parts: Parts, find: Find) -> None:
        self._p = parts
        self._find = find
        self._counted: dict[str, scores.Tally] = {}

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return {"score": self.score}

    async def score(self, c: Connection, m: Fields) -> Scores:
        """The figures of one session, removed ones included, or of every session."""
        if text_of(m, "sid"):
            try:
                session = await self._find(m)
            except OpError as exc:
                kept = await at_home(_kept, self._p.folders.archive, text_of(m, "sid")) if exc.code == _GONE else None
                if kept is None:
                    raise
                return Scores(scores=[kept])
            one = await self._of(session)
            return Scores(scores=[msgspec.structs.replace(one, artifacts=await self._made(session))])
        self._counted = {sid: y for sid, y in self._counted.items() if sid in self._p.fleet.sessions}
        return Scores(scores=[await self._of(s) for s in self._p.fleet if not s.damaged and not s.foreign])

    async def _of(self, session: Session) -> SessionScore:
        try:
            made = await session.look("counting its log", _READ_S, lambda: self._count(session))
        except (WorkspaceError, LogError, msgspec.DecodeError) as exc:
            raise OpError("unreadable", f"the log of {session.name} cannot be counted: {exc}") from exc
        self._counted[session.sid] = made
        return SessionScore(**msgspec.structs.asdict(scores.score(made)), sid=session.sid, name=session.name)

    def _count(self, session: Session) -> scores.Tally:
        known = self._counted.get(session.sid)
        start = deepcopy(known) if known is not None else scores.Tally()
        return scores.tally((t.decode(line) for line in reader.read(session.folder.log, start.seq)), start)

    @staticmethod
    async def _made(session: Session) -> Artifacts | None:
        """None when there is no branch to look at any more."""
        try:
            return await session.look(
                "what it made", _READ_S, lambda: artifacts.artifacts(open_worktree(private_of(session)))
            )
        except WorkspaceError:
            return None


def _kept(archive: Path, named: str) -> SessionScore | None:
    """Of a removed session, from its archived log; None when there is none of that name, or several. Blocking.

    Raises OpError ``unreadable``.
    """
    found = archived.fitting(archived.listed(archive), named)
    if len(found) != 1:
        return None
    one = found[0]
    try:
        made = scores.tally(t.decode(line) for line in reader.read(Path(one.folder) / "log"))
    except (LogError, msgspec.DecodeError, OSError) as exc:
        raise OpError("unreadable", f"the log of {one.name or one.sid} cannot be counted: {exc}") from exc
    return SessionScore(**msgspec.structs.asdict(scores.score(made)), sid=one.sid, name=one.name, artifacts=None)
