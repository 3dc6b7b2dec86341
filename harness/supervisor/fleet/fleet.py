"""All sessions of this state folder: finding them, their rows, and telling what changed."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from harness.domain.calls.approval_shapes import Shape
from harness.domain.problems import NONE, Trouble
from harness.domain.states import Desired, State
from harness.protocol.paths import Folders
from harness.protocol.session_names import OtherHost, SessionName
from harness.supervisor.base.errors import OpError
from harness.supervisor.fleet.session import Session
from harness.views.rows import Money, row
from harness.views.session_views import (
    DONE,
    ERRORS,
    RUNNING,
    FleetView,
    SessionRow,
    Standing,
    changed,
    counted,
    reminded,
    standing,
    taken_back,
    troubled,
)
from harness.workspace.tree.diff import Extent

_MAY_WAIT = frozenset((State.RUNNING, State.STARTING, State.PARKED, State.LIMITED))
_HELD_UP = frozenset(_MAY_WAIT | {State.LOST, State.STOPPED})
"""States of sessions that would go on, were it not for something that ends by itself."""


class Fleet:
    """All sessions by id.

    ``changed`` and ``gone`` collect what a push must tell; ``event`` is set when there is any.
    """

    def __init__(self, folders: Folders, money: Callable[[str], Money]) -> None:
        self.folders = folders
        self.sessions: dict[str, Session] = {}
        self._money = money
        self.at_gate: Callable[[Session], str] = lambda _: ""
        """What a session waits for before it may ask its endpoint, in words; empty when it does not."""
        self.full = ""
        """Why no session can write now (its disk is full); empty while they can."""
        self._standing: dict[str, Standing] = {}
        self._regroup: set[str] = set()
        self._observers: list[Callable[[Session], None]] = []
        self._waiting: list[tuple[Callable[[], bool], asyncio.Event]] = []

    def observe(self, observer: Callable[[Session], None]) -> None:
        """Call ``observer`` whenever a session changed."""
        self._observers.append(observer)

    def _changed(self, session: Session) -> None:
        self._regroup.add(session.sid)
        for observer in self._observers:
            observer(session)
        for condition, event in self._waiting:
            if condition():
                event.set()

    async def until(self, condition: Callable[[], bool], wait: float) -> bool:
        """Wait until ``condition`` holds after some session changed; False when ``wait`` seconds pass first."""
        if condition():
            return True
        entry = (condition, asyncio.Event())
        self._waiting.append(entry)
        try:
            async with asyncio.timeout(wait):
                await entry[1].wait()
        except TimeoutError:
            return condition()
        finally:
            self._waiting.remove(entry)
        return True

    def add(self, sid: str) -> Session:
        """The session of that id, new when unknown."""
        session = self.sessions.get(sid)
        if session is None:
            session = Session(sid, self.folders, self._changed)
            self.sessions[sid] = session
            self._regroup.add(sid)
        return session

    def drop(self, session: Session) -> None:
        self.sessions.pop(session.sid, None)
        self._changed(session)

    def __iter__(self) -> Iterator[Session]:
        return iter(list(self.sessions.values()))

    def approved(self) -> list[Shape]:
        """What a person let run in any session whose log can be believed."""
        sound = (s for s in self if not s.foreign and not s.damaged)
        return [shape for session in sound for shape in session.state.approved.shapes]

    def find(self, text: str) -> Session:
        """By id, else by name, else by the beginning of an id.

        Raises OpError ``not_found``, ``ambiguous``, ``other_host``.
        """
        try:
            text = SessionName.parse(text).own()
        except OtherHost as exc:
            raise OpError("other_host", str(exc), "leave the machine out to mean a session of this one") from exc
        if (found := self.sessions.get(text)) is not None:
            return found
        named = [s for s in self if s.name == text]
        matches = named or [s for s in self if text and s.sid.startswith(text)]
        if len(matches) == 1:
            return matches[0]
        if not matches:
            raise OpError("not_found", f"no session {text!r}", "list them with: watchfloor ls")
        raise OpError(
            "ambiguous",
            f"{text!r} fits {len(matches)} sessions: {', '.join(s.sid for s in matches[:8])}",
            "use more of the id",
        )

    def row(self, session: Session) -> SessionRow:
        """The row a client sees. A session whose row cannot be made shows that, and takes no other row with it."""
        try:
            made = reminded(self._row(session), time.time())
            return taken_back(made) if made.merged and made.merged_commit == session.lost_merge else made
        except Exception as exc:
            told = f"a defect of Watchfloor hides its state: {type(exc).__name__}: {exc}"
            return SessionRow(
                session.sid,
                session.sid,
                "failed",
                ERRORS,
                told,
                "",
                source="supervisor",
                evidence=str(session.folder.log),
            )

    def _row(self, session: Session) -> SessionRow:
        money = self._money(session.sid)
        if not session.loaded:
            return self._unread(session, money)
        made = row(session.sid, session.state, session.live, money=money, now=time.time())
        if made.worktree:  # the log says where it was made; a state folder that was moved took it along
            made = msgspec.structs.replace(made, worktree=str(self.folders.worktrees / session.sid))
        if (found := counted_of(session)) is not None:
            made = changed(made, found.files, found.added, found.removed, counted=_is_counted(session))
        if session.aside is not None:
            return self._set_aside(session, made)
        if session.trouble and (session.damaged or not session.state.terminal):
            return troubled(made, session.trouble, held=session.held)
        if session.state.terminal:
            told = session.blocks.get("step")
            return made if told is None else msgspec.structs.replace(made, detail=f"{made.detail}; {told}")
        if made.state in _HELD_UP and session.state.desired != Desired.PAUSED and (told := self._held_up(session)):
            return troubled(made, told, held=False)
        if made.state in _MAY_WAIT and (words := self.at_gate(session)):
            return msgspec.structs.replace(made, state=State.LIMITED, detail=words, source="supervisor")
        return made

    def _unread(self, session: Session, money: Money) -> SessionRow:
        """The row of a session whose log is not folded: what the index remembers, money as the ledger has it now."""
        remembered = session.indexed
        known = remembered.row if remembered is not None and (remembered.current or session.damaged) else None
        made = known or SessionRow(
            session.sid, session.sid, "unknown", RUNNING, "", "", evidence=str(session.folder.log)
        )
        if money.spent is not None:
            made = msgspec.structs.replace(
                made,
                spent_nano=money.spent,
                reserved_nano=money.reserved,
                unknown_nano=money.unknown,
                price=money.price,
                tokens=money.tokens,
            )
        if session.aside is not None:
            return self._set_aside(session, made)
        if session.trouble or known is None:
            return troubled(made, session.trouble or Trouble("unread"), held=session.held)
        return made

    @staticmethod
    def _set_aside(session: Session, made: SessionRow) -> SessionRow:
        assert session.aside is not None
        told = f"{session.aside.reason}; {session.trouble}" if session.trouble else session.aside.reason
        return msgspec.structs.replace(
            made,
            state="stopped",
            group=DONE,
            detail=told,
            since=session.aside.ts,
            source="supervisor",
            desired="stopped",
        )

    def _held_up(self, session: Session) -> Trouble:
        """What ends by itself, or once somebody has mended it; what needs somebody comes first."""
        told = session.blocks.values()
        return (
            next((h for h in told if h.words.mend), None)
            or next(iter(told), None)
            or (Trouble("no_space", self.full) if self.full else NONE)
        )

    def rows(self) -> list[SessionRow]:
        return [self.row(s) for s in self]

    def totals(self, base: FleetView) -> FleetView:
        """``base`` (money and health) with the counts filled in."""
        for sid in self._regroup:
            if (session := self.sessions.get(sid)) is None:
                self._standing.pop(sid, None)
            else:
                self._standing[sid] = standing(self.row(session))
        self._regroup.clear()
        return counted(base, self._standing.values())

    def approval(self, approval_id: str, code: str = "not_open") -> Session:
        """The session whose request it is (or was, when its cap was raised meanwhile). Raises OpError with ``code``."""
        for session in self:
            if approval_id in session.state.approvals or approval_id in session.track.passed:
                return session
        for session in self:
            if approval_id in (session.sid, session.name):
                waits = ", ".join(session.state.approvals)
                hint = f"it waits with: {waits}" if waits else "nothing of it waits for you"
                raise OpError(code, f"{approval_id!r} is a session; a request is what is decided", hint)
        hint = "list the open ones with: watchfloor approvals"
        raise OpError(code, f"request {approval_id!r} is not open: it was decided, withdrawn or never made", hint)


def counted_of(session: Session) -> Extent | None:
    """How much it changed, as counted last: since the supervisor began, else as the index remembers it."""
    if session.extent.found is not None or session.indexed is None or not session.indexed.current:
        return session.extent.found
    row = session.indexed.row
    return None if row.files is None else Extent(row.files, row.lines_added, row.lines_removed)


def work_of(session: Session) -> tuple[int, str, bool]:
    """What its files rest on: something else after whatever may have changed them."""
    return session.state.tool_calls, session.state.last_undo, session.state.terminal


def _is_counted(session: Session) -> bool:
    """What was counted last is of its work as it is now, not of what it was before the newest calls."""
    if session.extent.found is None and session.indexed is not None:
        return session.indexed.row.group == DONE
    return session.extent.found_of == work_of(session)


def session_folders(root: Path) -> list[str]:
    """Names of the session folders on disk; folders that a removal left half deleted begin with a dot and are not among
    them.
    """
    if not root.is_dir():
        return []
    return sorted(p.name for p in root.iterdir() if p.is_dir() and not p.name.startswith("."))
