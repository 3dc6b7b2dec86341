"""One session as the supervisor knows it: its fold, fed by its keeper, and everything about it that is in no log."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar

import msgspec

from harness.domain.calls.call_states import CallStage
from harness.domain.problems import Trouble
from harness.domain.states import Desired
from harness.eventlog.framing import LogError, NewerLog
from harness.events import types as t
from harness.projections import state_snapshots
from harness.projections.apply import advance
from harness.projections.state.row_state import Liveness
from harness.projections.state.session_state import SessionState
from harness.protocol.paths import Folders
from harness.reports import touched
from harness.supervisor.base.errors import LinkLost, OpError
from harness.supervisor.base.threads import StandsStill, Threads, at_home
from harness.supervisor.fleet import fold_cache, homes, set_aside
from harness.supervisor.fleet.awaited import WAIT_S, Awaited
from harness.supervisor.fleet.call_records import Track
from harness.supervisor.fleet.subsystem_state import (
    CallsNow,
    Counted,
    Indexed,
    KeptStates,
    MergedInto,
    Printed,
    Published,
    Shown,
    Work,
)
from harness.supervisor.fleet.thinking import Thinking
from harness.supervisor.fleet.troubles import Owner, Troubles
from harness.supervisor.processes.keeper_link import KeeperLink
from harness.workspace.git.errors import Unexamined

READ_S = 5.0
"""Seconds after which whoever waits for a log to be read goes on without it."""
_BLOCKING: tuple[Owner, ...] = ("step", "call")
_readers = Threads("reading logs", 16).call
T = TypeVar("T")


def log_trouble(exc: Exception) -> Trouble:
    """What a log that cannot be read means for its session."""
    if isinstance(exc, NewerLog):
        return Trouble("newer", str(exc))
    return Trouble("disk" if isinstance(exc, OSError) else "damaged", str(exc))


class Session:
    """One session: folder, fold, link, processes. Everything in it is derived or re-adopted; the log is the truth."""

    def __init__(self, sid: str, folders: Folders, changed: Callable[[Session], None]) -> None:
        self.sid = sid
        self.folder = folders.session(sid)
        self._worktrees = folders.worktrees
        self.state = SessionState()
        self.track = Track()
        self._last = b""
        self.snapshot_seq = -1
        """The newest record that the newest snapshot holds."""
        self.loaded = False
        self.damaged = ""
        self.foreign = ""
        """Why its log can take no record; why it is not ours to drive. Both keep everything away from its keeper."""
        self.aside: set_aside.Aside | None = None
        self.link: KeeperLink | None = None
        self.troubles = Troubles(lambda: changed(self))
        self.wish = asyncio.Lock()
        """Held from the look at what is wanted of the session to the record of what is wanted now."""
        self.lock = asyncio.Lock()
        self.removing = False
        self.lost_merge = ""
        """What it was merged as, once the branch has that no more."""
        self.indexed: Indexed | None = None
        self.work = Work()
        self.running = CallsNow()
        self.shown = Shown()
        self.published = Published()
        self.kept_states = KeptStates()
        self.extent = Counted()
        self.printed = Printed()
        self.thinking = Thinking()
        self._awaited = Awaited()
        self._changed = changed
        self._ending = 0
        self._storing: set[asyncio.Task[None]] = set()
        self._reading: asyncio.Future[None] | None = None
        self._hands = Threads(f"session {sid}", 1)
        self._eyes = Threads(f"session {sid}", 1)

    @property
    def live(self) -> Liveness:
        doing, evidence, request = self.thinking.brain.doing if self.thinking.brain is not None else ("", "", "")
        current = request == self._request()
        return Liveness(
            keeper=self.link is not None or None if self.state.terminal else self.link is not None,
            brain=self.thinking.brain is not None,
            doing=doing if current else "",
            evidence=evidence if current else "",
            call=self.track.at_work(self.state),
            printed=self.printed.line if self.state.jobs.running else "",
        )

    def _request(self) -> str:
        return self.state.request.request_id if self.state.request is not None else ""

    def told(self, doing: str, evidence: str) -> None:
        """Its agent says what it is at, in a reply that is on its way."""
        if self.thinking.brain is not None and self.state.request is not None:
            self.thinking.brain.doing = (doing, evidence, self._request())
            self._changed(self)

    def touch(self) -> None:
        """Its row may look different now, and its worker may have something to do."""
        self.wake()
        self.shown_anew()

    def shown_anew(self) -> None:
        """Its row may look different now; its worker has nothing to do by it."""
        self._changed(self)

    def wake(self) -> None:
        """Its worker may have something to do."""
        self.work.poke.set()

    def block(self, owner: Owner, told: Trouble) -> None:
        """Say why the session does not go on just now; `unblock` by the same ``owner`` takes it back."""
        self.troubles.block(owner, told)

    def unblock(self, owner: Owner) -> None:
        self.troubles.unblock(owner)

    @property
    def trouble(self) -> Trouble:
        """What holds it up now; with `held` it waits for a person, otherwise it ends by itself."""
        return self.troubles.worst

    @property
    def held(self) -> bool:
        return self.troubles.held

    @property
    def blocks(self) -> Mapping[Owner, Trouble]:
        """Why it does not go on though nobody has to decide anything, by who found it."""
        return self.troubles.blocks

    # -- what other rooms tell it ------------------------------------------------------------------

    def known_as(self, indexed: Indexed) -> None:
        """What the index remembers of it."""
        self.indexed = indexed

    def begun(self) -> None:
        """It is to be driven from here, whether it has a log already or not."""
        self.loaded = True

    def unread(self, why: str) -> None:
        """Its log does not come back; `readable` takes that back."""
        self.troubles.hold("reading", Trouble("still", why))

    def unreadable(self, why: str) -> None:
        """A defect of ours met its log: it can be looked at, and nothing drives it."""
        self.damaged = why
        self.troubles.hold("log", Trouble("defect", why))

    def left_alone(self, why: Trouble) -> None:
        """Its log is damaged: nothing drives it until a person looks. What could be read stays readable."""
        self.troubles.hold("log", why)
        if self.link is not None:
            self.link.abort()
        self.touch()

    def put_aside(self, aside: set_aside.Aside) -> None:
        """It was stopped without its log."""
        self.aside = aside
        self.touch()

    def joined(self, link: KeeperLink) -> None:
        """Its keeper was reached."""
        self.link = link
        self.troubles.linked()

    @property
    def merged(self) -> MergedInto | None:
        """Where its work was merged, as its log says; None when it was not."""
        if self.loaded:
            ended = self.state.merging.ended if self.state.merging.merged else None
            intent = self.state.intent
            return (
                MergedInto(intent.repo, ended.into, ended.commit) if ended is not None and intent is not None else None
            )
        row = self.indexed.row if self.indexed is not None else None
        return MergedInto(row.repo, row.merged, row.merged_commit) if row is not None and row.merged_commit else None

    def merge_stands(self, commit: str, still: bool) -> None:
        """Whether the branch that it was merged into has that ``commit`` was looked up."""
        lost = "" if still else commit
        if lost != self.lost_merge:
            self.lost_merge = lost
            self.shown_anew()

    def leave(self) -> None:
        """It is being removed: its worker ends and nothing of it is stored any more."""
        self.removing = True
        self.wake()

    @contextlib.contextmanager
    def ending(self) -> Iterator[None]:
        """Its end is about to be recorded: nothing new begins meanwhile."""
        self._ending += 1
        try:
            yield
        finally:
            self._ending -= 1

    @property
    def quiet(self) -> bool:
        return self._ending > 0

    # -- its log -----------------------------------------------------------------------------------

    @property
    def blocked(self) -> str:
        """Why no reply may be paid for now: what it asks for could not be carried out.

        Empty when nothing is in the way.
        """
        return next((str(h) for h in map(self.blocks.get, _BLOCKING) if h is not None), "")

    def feed(self, lines: list[str]) -> None:
        """Fold raw log lines from the keeper. A line that does not decode drops the link: the log must be looked at."""
        wanted = self.state.desired
        try:
            for line in lines:
                raw = line.encode()
                self._advance(t.decode(raw), raw)
        except msgspec.DecodeError as exc:
            self.troubles.fail("log", Trouble("unclear", f"a record does not decode: {exc}"))
            if self.link is not None:
                self.link.abort()
        if wanted != Desired.STOPPED == self.state.desired:
            self._hands.interrupt()
        self.keep(state_snapshots.EVERY)
        self._awaited.came(self.state.seq)
        self.touch()

    def _advance(self, record: t.Record, line: bytes) -> None:
        if record.seq <= self.state.seq:
            return
        if record.seq != self.state.seq + 1:
            raise msgspec.DecodeError(f"record {record.seq} came after {self.state.seq}")
        self.track.note(self.state, record)
        advance(self.state, record)
        self._last = line

    async def read(self) -> None:
        """`load` off the loop, once however many want it.

        Raises what it raises, and OpError ``stands_still`` while it does not come back.
        """
        if self._reading is None:
            self._reading = asyncio.ensure_future(_readers(self.load))
        reading = self._reading
        if not (await asyncio.wait({reading}, timeout=READ_S))[0]:
            raise OpError(
                "stands_still",
                f"its log in {self.folder.log} is not read after {READ_S:.0f} s",
                "see to its disk; it is looked at again by itself",
            )
        self._reading = None
        reading.result()

    async def readable(self) -> None:
        """Wait until a reading that stands still has come back after all."""
        if self._reading is not None:
            await asyncio.wait({self._reading})
        self.troubles.mended("reading")

    def load(self) -> None:
        """Fold the log from disk (blocking: run it in a thread, and only while no keeper feeds this session).

        Raises LogError, DecodeError or OSError for a log that cannot be read to its end; what is good of it is folded
        then, and nothing drives it.
        """
        self.aside = set_aside.read(self.folder)
        try:
            self.state, self.track, self._last, self.snapshot_seq = fold_cache.recall(self.folder)
        except (LogError, msgspec.DecodeError, OSError) as exc:
            self.state, self.track = fold_cache.salvage(self.folder)
            self._last = b""
            self.loaded = self.state.intent is not None
            self.damaged = str(exc)
            self.troubles.hold("log", log_trouble(exc))
            self.foreign = homes.foreign(self.folder, self._worktrees, self.state.intent)
            raise
        self.loaded = True
        self.damaged = ""
        self.foreign = homes.foreign(self.folder, self._worktrees, self.state.intent)
        if self.foreign:
            self.troubles.hold("log", Trouble("foreign", self.foreign))

    def keep(self, least: int = fold_cache.WORTH_KEEPING) -> None:
        """Begin to store a snapshot off the loop when ``least`` records are new since the last one; `kept` waits for
        it.
        """
        if self.removing or self.state.seq - self.snapshot_seq < least or not self._last:
            return
        self.snapshot_seq = self.state.seq
        data = fold_cache.encode(self.state, self.track, self._last)
        task = asyncio.get_running_loop().create_task(at_home(self._store, self.snapshot_seq, data))
        self._storing.add(task)
        task.add_done_callback(self._storing.discard)

    async def kept(self) -> None:
        """Wait until every snapshot that was begun is on disk."""
        await asyncio.gather(*self._storing)

    # -- its worktree and git folder ---------------------------------------------------------------

    async def do(self, what: str, limit_s: float, work: Callable[[], T], *, lasting: bool = False) -> T:
        """Blocking work of the session's own worker on its worktree and git folder, one after the other, each within
        ``limit_s`` seconds.

        ``what`` says in words what is done. Raises WorkspaceError: what the work raises of it, Unexamined for what the
        system refuses, StandsStill when it does not come back; then the session is held until its user looks at it. A
        wish to stop the session ends it early unless it is ``lasting``.
        """
        return await self._blocking(self._hands, what, limit_s, work, lasting)

    async def look(self, what: str, limit_s: float, work: Callable[[], T]) -> T:
        """The same for somebody who only looks (a diff, a card), in a thread of its own: looking never delays the
        session's calls.
        """
        return await self._blocking(self._eyes, what, limit_s, work)

    async def _blocking(
        self, threads: Threads, what: str, limit_s: float, work: Callable[[], T], lasting: bool = False
    ) -> T:
        if self.foreign:
            raise Unexamined(self.foreign)
        try:
            return await threads.run(what, limit_s, work, lasting=lasting)
        except StandsStill as exc:
            if still := threads.still():
                stand = "stands" if len(still) == 1 else "stand"
                words = f"{exc} ({len(still)} of its workers {stand} still)"
                self.troubles.hold("hands", Trouble("still", words))
                self.touch()
            raise
        except OSError as exc:
            raise Unexamined(f"session {self.sid}: {what}: {exc}") from exc
        except (ValueError, RecursionError) as exc:  # its text may quote what was read
            raise Unexamined(
                f"session {self.sid}: {what}: what is there cannot be understood ({type(exc).__name__})"
            ) from exc

    def _store(self, seq: int, data: bytes) -> None:
        try:
            state_snapshots.store(self.folder.snapshots, seq, data)
            touched.extend(self.folder.log, self.folder.touched)
        except FileNotFoundError:
            return  # the session was removed meanwhile
        except (OSError, LogError) as exc:  # only the next start is slower
            print(f"session {self.sid}: no snapshot of its state could be stored: {exc}", file=sys.stderr, flush=True)

    def lost(self) -> None:
        """The keeper's connection ended: everybody who waits for a record learns it."""
        self.link = None
        self._awaited.lost(f"keeper {self.sid} closed the connection")
        self.touch()

    async def reached(self, seq: int) -> None:
        """Wait until the fold stands at ``seq`` or later. Raises LinkLost."""
        if self.state.seq >= seq:
            return
        try:
            await self._awaited.record(seq)
        except TimeoutError as exc:
            raise LinkLost(f"keeper {self.sid} did not show record {seq} in time") from exc

    async def until(self, condition: Callable[[], bool], wait: float = WAIT_S) -> None:
        """Wait until ``condition`` holds after some record.

        Raises LinkLost when the link ends or ``wait`` seconds pass.
        """
        if condition():
            return
        try:
            await self._awaited.condition(condition, wait)
        except TimeoutError as exc:
            raise LinkLost(f"keeper {self.sid} did not record what was awaited in time") from exc

    def keeper(self) -> KeeperLink:
        """The link, or OpError ``lost``."""
        if self.link is None:
            verb = "continue" if self.state.terminal else "resume"
            look = f"look at it: watchfloor verify {self.sid}; try again: watchfloor {verb} {self.sid}"
            raise OpError(
                "lost",
                f"{self.name} cannot take this now: " + str(self.trouble or Trouble("silent")),
                look if self.held else "it is taken up again by itself; try again",
            )
        return self.link

    async def append(self, *bodies: t.Body, cls: str = "A") -> int:
        """Append records and wait until our fold has them too; returns the last sequence number.

        Raises OpError, LinkLost.
        """
        last = await self.keeper().append(list(bodies), cls)
        await self.reached(last)
        return last

    @property
    def name(self) -> str:
        if self.loaded:
            return self.state.name or self.sid
        return self.indexed.row.name if self.indexed is not None else self.sid

    @property
    def doing_calls(self) -> bool:
        """True while a call runs or was just told to."""
        return bool(self.running.executing) or any(c.stage == CallStage.STARTED for c in self.state.calls.open.values())

    @property
    def finished(self) -> bool:
        """Terminal by its log, or known as such from the index."""
        if self.aside is not None:
            return True
        if self.loaded:
            return self.state.terminal
        return self.indexed is not None and self.indexed.current
