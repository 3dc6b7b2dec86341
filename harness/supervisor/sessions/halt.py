"""Stopping everything: each session's end goes on record, then it is seen that no process, lock or socket of a session
is left.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.domain.states import Desired
from harness.events import types as t
from harness.keeper.calls import process_trees, spool
from harness.linux.proc import Identity, alive, command, identify
from harness.protocol import locks
from harness.protocol.paths import Folders, SessionFolder
from harness.supervisor.base.errors import LinkLost, OpError
from harness.supervisor.base.threads import at_home
from harness.supervisor.calls.repository import publishing
from harness.supervisor.fleet.fleet import Fleet, session_folders
from harness.supervisor.fleet.session import Session
from harness.supervisor.processes.process import end
from harness.supervisor.sessions.begin.launch import Launcher
from harness.supervisor.sessions.conductor import Conductor

LAUNCHES_S = 25.0
"""Seconds for launches under way."""
TAKE_UP_S = 8.0
"""Seconds for a keeper to be found."""
ANSWER_S = 12.0
"""Seconds for a keeper's answer."""
END_S = 30.0
"""Seconds for a stop to be carried out."""
_STRAYS_S = 3.0
_TERM = (signal.SIGTERM, 3.0)
_KILL = (signal.SIGKILL, 5.0)
_KEEPER = b"harness.keeper"


@dataclass(frozen=True, slots=True)
class Left:
    """Something of a session that lives: a process, or a lock whose holder is not known (then ``who`` is None)."""

    sid: str
    what: str
    who: Identity | None


class Halt:
    """Stops every session. Launches are refused from its beginning, and for good when it succeeds."""

    def __init__(self, folders: Folders, fleet: Fleet, conductor: Conductor, launcher: Launcher) -> None:
        self._folders = folders
        self._fleet = fleet
        self._conductor = conductor
        self._launcher = launcher

    async def run(self, by: t.By) -> list[str]:
        """Stop all. Returns what could not be put on record, one sentence for each session; nothing of these lives
        either.

        Raises OpError ``busy`` naming what could not be ended; launches are possible again then.
        """
        try:
            return await self._run(by)
        except BaseException:
            self._launcher.closed = False
            raise

    async def _run(self, by: t.By) -> list[str]:
        with contextlib.suppress(TimeoutError):  # what still launches then is stopped like everything else
            async with asyncio.timeout(LAUNCHES_S):
                await self._launcher.close()
        found = await asyncio.gather(
            *(
                self._stop(s, by)
                for s in self._fleet
                if not s.foreign and (s.work.task is not None or s.link is not None or not s.finished)
            )
        )
        left = await self._sweep()
        if left:
            named = "; ".join(
                f"{x.what} of session {self._name(x.sid)}" + (f" (process {x.who.pid})" if x.who else "")
                for x in left[:8]
            )
            raise OpError(
                "busy", f"still there: {named}", "no signal ends it, as when a disk hangs; try again when that answers"
            )
        return [why for why in found if why]

    async def end_one(self, session: Session) -> None:
        """End every process of one session whose log can take no record.

        Raises OpError ``busy`` when one cannot be ended.
        """
        if session.foreign:
            return
        await self._sweep_one(session.sid)
        if left := await at_home(self._look, session.sid):
            raise OpError(
                "busy",
                f"{left[0].what} of session {session.name} cannot be ended",
                "no signal ends it, as when a disk hangs; try again then",
            )

    def _name(self, sid: str) -> str:
        session = self._fleet.sessions.get(sid)
        return session.name if session is not None else sid

    # -- on record ---------------------------------------------------------------------------------

    async def _stop(self, session: Session, by: t.By) -> str:
        """Put one session's stop on record and see it carried out; why that was not possible, or empty."""
        why = ""
        for _ in range(2):
            try:
                async with asyncio.timeout(TAKE_UP_S + ANSWER_S):
                    await self._ask(session, by)
            except (OpError, LinkLost) as exc:
                why = str(session.trouble or exc)
            except TimeoutError:
                why = "its keeper does not answer"
            else:
                if await self._fleet.until(lambda: session.work.task is None and session.link is None, END_S):
                    return ""
                why = (
                    str(session.trouble) if session.trouble else "its stop is on record and was not carried out in time"
                )
            await self.end_keeper(session)  # one that does not do its work stands in the way of the next one
        if session.finished:
            return ""
        return f"session {session.name} is not on record as stopped ({why}); nothing of it runs"

    async def _ask(self, session: Session, by: t.By) -> None:
        if session.state.terminal:
            publishing.hurry(session)
            session.touch()
            return
        with session.ending():
            if session.link is None:
                self._conductor.release(session)
                await self._fleet.until(lambda: session.link is not None or session.held, TAKE_UP_S)
            async with session.wish:
                if session.state.desired != Desired.STOPPED:
                    await session.append(
                        t.SessionDesired(state=Desired.STOPPED, reason="everything was stopped", by=by)
                    )
                else:
                    session.keeper()
                    session.touch()

    async def end_keeper(self, session: Session) -> bool:
        """Kill its keeper, so that another one takes its place; False when one cannot be killed."""
        found = await at_home(
            _living, self._folders.session(session.sid), session.sid, None if session.foreign else session.state.keeper
        )
        return all([left.who is None or await end(left.who, _KILL) for left in found])

    # -- nothing left ------------------------------------------------------------------------------

    async def _sweep(self) -> list[Left]:
        """End what is left of any session on disk, known to us or not; what cannot be ended."""
        names = await at_home(session_folders, self._folders.sessions)
        await asyncio.gather(*(self._sweep_one(name) for name in names))
        return [left for name in names for left in await at_home(self._look, name)]

    def _look(self, sid: str) -> list[Left]:
        """What lives of one session (blocking); a socket file that nobody serves any more is taken away."""
        session = self._fleet.sessions.get(sid)
        folder = self._folders.session(sid)
        # a log from elsewhere names processes of elsewhere
        ours = session is not None and session.loaded and not session.foreign
        found = _living(folder, sid, session.state.keeper if session is not None and ours else None)
        if session is not None and ours and (lease := session.state.lease) is not None:
            brain = Identity(lease.pid, lease.start, lease.boot)
            found += [Left(sid, "the brain", brain)] if alive(brain) else []
        if not found:
            with contextlib.suppress(OSError):
                folder.keeper_socket.unlink(missing_ok=True)
        return found

    async def _sweep_one(self, sid: str) -> None:
        for left in await at_home(self._look, sid):
            if left.who is not None:
                await end(left.who, _TERM, _KILL)
        session = self._fleet.sessions.get(sid)
        if session is None or not session.foreign:
            await at_home(_end_strays, self._folders.session(sid))


def _living(folder: SessionFolder, sid: str, recorded: t.KeeperStarted | None) -> list[Left]:
    """The living keepers of a session: who holds its lock, and who said last in its log to be its keeper."""
    who = set(_holders(folder.lock))
    if recorded is not None and alive(known := Identity(recorded.pid, recorded.start, recorded.boot)):
        who.add(known)
    if who:
        return [Left(sid, "the keeper", w) for w in sorted(who)]
    return [Left(sid, "the lock", None)] if locks.held(folder.lock) else []


def _holders(lock: Path) -> Iterator[Identity]:
    """Keepers that hold this lock file."""
    for pid in locks.holders(lock):
        ours = any(_KEEPER in word for word in command(pid))
        if ours and (who := identify(pid)) is not None:
            yield who


def _end_strays(folder: SessionFolder) -> None:
    """Kill what calls of a dead keeper left running (blocking)."""
    try:
        names = [name for name in os.listdir(folder.spool) if name.endswith(".pid")]
    except OSError:
        return
    for name in names:
        if (leader := spool.leader(folder.spool / name.removesuffix(".pid"))) is not None:
            process_trees.kill_session(leader, _STRAYS_S)
