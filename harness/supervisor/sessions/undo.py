"""Undo: which states of a worktree can be had back, and bringing one back.

The log says what happened, the vault what is kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from harness.eventlog import reader
from harness.events import types as t
from harness.keeper.loop.requests import StatesKept, TakeState, UndoCall
from harness.projections.state.checkpoints import Checkpoint, Due
from harness.supervisor.base import ids
from harness.supervisor.base.errors import OpError
from harness.supervisor.calls.repository import publishing
from harness.supervisor.calls.session_folder import private_of
from harness.supervisor.fleet.session import Session
from harness.supervisor.sessions.keepers import Keepers
from harness.supervisor.sessions.restoring import NOT_KEPT, Restoring
from harness.supervisor.sessions.taking.apart import BY_YOU
from harness.tools.summary import call_text
from harness.vault.vault_ops import KeptState
from harness.views.undo_views import Undone, UndoPoint, UndoPoints
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.private_git.private_gitdir import agent_head
from harness.workspace.tree import scan
from harness.workspace.tree.worktrees import open_worktree

LISTED = 200
_CONCERNS = (b'"type":"tool.proposed"', b'"type":"tool.started"', b'"type":"undo.', b'"type":"checkpoint.created"')
_PLACE_OF_TYPE = 96
_NOW = "now"
_READ_S = 120.0
_NAMED = 8
"""Commits that an answer names."""


@dataclass(slots=True)
class _History:
    points: list[UndoPoint] = field(default_factory=list)
    titles: dict[str, tuple[str, str]] = field(default_factory=dict)
    passing: set[str] = field(default_factory=set)
    """Checks that ran before the work: what they changed is restored."""
    checkpoints: dict[str, list[bool]] = field(default_factory=dict)
    """By checkpoint, which of the points until then were undone."""

    def take(self, r: t.Record) -> None:
        b = r.body
        if isinstance(b, t.ToolProposed) and b.before_work:
            self.passing.add(b.call_id)
        elif isinstance(b, t.ToolProposed):
            self.titles[b.call_id] = (b.tool, call_text(b.tool, b.input))
        elif isinstance(b, t.ToolStarted):
            tool, title = self.titles.pop(b.call_id, ("", ""))
            if b.snapshot and b.call_id not in self.passing:
                self.points.append(UndoPoint(b.call_id, tool, title, r.ts, b.snapshot, b.left_out))
        elif isinstance(b, t.CheckpointCreated):
            self.checkpoints[b.checkpoint_id] = [p.undone for p in self.points]
        elif isinstance(b, t.UndoStarted) and not b.of_checks:
            title = f"undo of {b.call_id} and all after it"
            if (then := self.checkpoints.get(b.call_id)) is not None:
                title = f"going back to checkpoint {b.call_id}"
                self._as_then(then)
            else:
                self._undone(b.call_id)
            self.points.append(UndoPoint(b.undo_id, "undo", title, r.ts, b.before))

    def _as_then(self, then: list[bool]) -> None:
        """What was in the worktree at a checkpoint is in it again, and nothing that came later."""
        flags = [*then, *(True for _ in self.points[len(then) :])]
        self.points = [msgspec.structs.replace(p, undone=u) for p, u in zip(self.points, flags, strict=True)]

    def _undone(self, call_id: str) -> None:
        """Everything from that call on is not in the worktree any more."""
        start = max((i for i, p in enumerate(self.points) if p.call_id == call_id), default=len(self.points))
        self.points[start:] = [msgspec.structs.replace(p, undone=True) for p in self.points[start:]]


def history(lines: Iterable[bytes]) -> list[UndoPoint]:
    """Every state that calls and undos left behind, oldest first. Pure."""
    found = _History()
    for line in lines:
        if any(kind in line[: _PLACE_OF_TYPE + 40] for kind in _CONCERNS):
            found.take(t.decode(line))
    return found.points


def counted(points: list[UndoPoint], marks: Sequence[KeptState]) -> list[UndoPoint]:
    """The same with what each changed, apart from it what a person committed, and whether its state is still kept.

    ``marks`` as the vault lists them, oldest first. Pure.
    """
    places = {m.id: i for i, m in enumerate(marks)}
    of_calls = [0]
    of_you = [0]
    for mark in marks:
        mine = mark.label == BY_YOU
        of_calls.append(of_calls[-1] + (0 if mine else mark.changed))
        of_you.append(of_you[-1] + (mark.changed if mine else 0))
    found: list[UndoPoint] = []
    after = len(marks) - 1
    for point in reversed(points):
        here = places.get(point.snapshot)
        if here is None:
            found.append(msgspec.structs.replace(point, expired=True))
            continue
        changed = of_calls[after + 1] - of_calls[here + 1]
        yours = of_you[after + 1] - of_you[here + 1]
        found.append(msgspec.structs.replace(point, changed=changed, yours=yours))
        after = here
    return found[::-1]


def newest(points: list[UndoPoint]) -> UndoPoint | None:
    """What a plain undo means: the newest call that changed something, is still in the worktree, and whose state is
    kept. Pure.
    """
    return next(
        (p for p in reversed(points) if p.tool != "undo" and p.changed and not p.undone and not p.expired), None
    )


def yours_after(points: list[UndoPoint], chosen: UndoPoint) -> int:
    """How many names of a person's commits go with what is taken back from there on. Pure."""
    start = points.index(chosen)
    return sum(p.yours for p in points[start:] if not p.undone)


class Undo:
    """Answers the two ops. A session that has ended gets its keeper back for as long as it takes."""

    def __init__(self, keepers: Keepers, restoring: Restoring) -> None:
        self._keepers = keepers
        self._restoring = restoring

    async def points(self, session: Session) -> UndoPoints:
        """Raises OpError."""
        async with session.lock:
            await self._at_work(session)
            found, stored = await self._points(session)
        return UndoPoints(points=found[: -LISTED - 1 : -1], store_bytes=stored)

    async def undo(self, session: Session, to: str, by: t.By) -> Undone:
        """Bring the state before ``to`` back (empty: before the newest call that changed something). Nobody can tell
        what a person did to the files meanwhile from what calls did, so what is there becomes a checkpoint first.
        Raises OpError.
        """
        async with session.lock:
            await self._at_work(session)
            found, _ = await self._points(session)
            point = self._chosen(session, found, to)
            before = await self._kept(session, point, by)
            undo_id = ids.undo_id()
            wanted = UndoCall(undo_id, point.call_id, point.snapshot, msgspec.to_builtins(by))
            done = await session.keeper().ask(wanted, None)
            if done.error:
                raise OpError(
                    "not_undone",
                    f"not everything could be brought back: {done.error}",
                    f"repeat it: watchfloor undo {session.sid} --to {point.call_id}",
                )
            await session.until(lambda: session.state.last_undo == undo_id)
            commits, more = await self._off(session, before)
            if not session.state.terminal:
                await session.append(t.UserMessage(text=_told(point), origin="harness", by=by))
            publishing.owed(session)
            session.touch()
        return Undone(
            undo_id=undo_id,
            to=point.call_id,
            title=point.title,
            restored=done.written,
            removed=done.removed,
            refused=list(done.refused),
            refused_count=done.refused_count,
            before="" if before is None else before.id,
            commits=commits,
            more_commits=more,
        )

    async def _kept(self, session: Session, point: UndoPoint, by: t.By) -> Checkpoint | None:
        """What is there now, on a ref of its own; None where git cannot: the vault keeps it all the same. Raises
        OpError.
        """
        try:
            return await self._restoring.made(session, Due("undo", f"before {point.call_id} was undone"), by)
        except OpError as exc:
            if exc.code != NOT_KEPT:
                raise
            return None

    @staticmethod
    async def _off(session: Session, before: Checkpoint | None) -> tuple[list[str], int]:
        """The commits that the branch loses by it, whoever made them, and how many are not named."""
        if before is None:
            return [], 0
        with contextlib.suppress(WorkspaceError):
            return await session.do("comparing its commits", _READ_S, lambda: _lost(session, before.head))
        return [], 0

    async def _at_work(self, session: Session) -> None:
        if session.link is None and session.state.terminal:
            await self._keepers.take_up(session)
        session.keeper()

    @staticmethod
    async def _points(session: Session) -> tuple[list[UndoPoint], int]:
        await session.keeper().ask(TakeState(_NOW, full=True), None)
        kept = await session.keeper().ask(StatesKept(), None)
        listed = await session.do("reading its log", _READ_S, lambda: _read(session.folder.log))
        return counted(listed, kept.marks), kept.stored

    @staticmethod
    def _chosen(session: Session, points: list[UndoPoint], to: str) -> UndoPoint:
        point = next((p for p in reversed(points) if p.call_id == to), None) if to else newest(points)
        if point is None:
            why = (
                f"{session.name} has no call {to}"
                if to
                else f"no call of {session.name} changed anything that is still there"
            )
            raise OpError(
                "not_found",
                f"{why}, so there is nothing to undo",
                f"list what can be undone: watchfloor undo {session.sid} --list",
            )
        if point.expired:
            raise OpError(
                "expired",
                f"the state before {point.call_id} is no longer kept",
                f"list what is: watchfloor undo {session.sid} --list",
            )
        if not to and yours_after(points, point):
            raise OpError(
                "yours",
                f"you committed in {session.name} after {point.call_id}, the newest call that changed something; an"
                " undo of that call takes your commit off the branch as well",
                f"take back both: watchfloor undo {session.sid} --to {point.call_id}",
            )
        return point


def _read(log: Path) -> list[UndoPoint]:
    return history(reader.read(log))


def _lost(session: Session, head: str) -> tuple[list[str], int]:
    tree = open_worktree(private_of(session))
    now = agent_head(tree)
    if now is None or now == head:
        return [], 0
    lost, more = scan.commits_since(tree, now, head, _NAMED)
    return [f"{short} {subject}" for short, subject in lost], more


def _told(point: UndoPoint) -> str:
    what = f"`{point.title}`" if point.title else point.call_id
    return (
        f"The human undid your work: the worktree and its git state are what they were just before {point.call_id}"
        f" ({what}). Everything you changed from there on is gone from the worktree; look at it again before you go on."
    )
