"""The supervisor process: one per state folder, by lock and epoch.

Wires the parts, adopts what lives, serves until asked to stop.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import fcntl
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from harness.events import types as t
from harness.events.durable import replace_file
from harness.events.framing import LogError
from harness.linux import heap, kernel
from harness.linux.proc import Identity, identify
from harness.protocol import identity
from harness.protocol.paths import STATE_VERSION, STOPPING, FolderError, Folders, ensure_private, resolve
from harness.protocol.session_names import is_session_id
from harness.supervisor.calls import grant_book
from harness.supervisor.calls.answers import Answers
from harness.supervisor.calls.approvals import Approvals
from harness.supervisor.calls.call_flow import CallFlow
from harness.supervisor.calls.granting import Granting
from harness.supervisor.calls.judging import Judging
from harness.supervisor.calls.recall import Recall
from harness.supervisor.endpoints.credentials import Credentials
from harness.supervisor.endpoints.endpoint_gates import Gates
from harness.supervisor.errors import LinkLost, OpError, out_of_space
from harness.supervisor.fleet.fleet import Fleet, session_folders
from harness.supervisor.fleet.index import Entry, Index, mark_of
from harness.supervisor.fleet.rooms import Indexed
from harness.supervisor.fleet.session import Session
from harness.supervisor.guardian import EXIT_ASKED, EXIT_BROKEN, EXIT_OTHER_LIVES, EXIT_REFUSED
from harness.supervisor.memories import book as memory_book
from harness.supervisor.money.cap_waits import CapWaits
from harness.supervisor.money.purse import Purse
from harness.supervisor.money.reservations import Bookkeeper
from harness.supervisor.processes.process import Watch
from harness.supervisor.serving.brain_ops import BrainOps
from harness.supervisor.serving.client_ops import Ops
from harness.supervisor.serving.parts import Parts
from harness.supervisor.serving.server import Server
from harness.supervisor.sessions.brains import Brains
from harness.supervisor.sessions.conductor import Conductor, unfinished
from harness.supervisor.sessions.continuing import Continuing
from harness.supervisor.sessions.keepers import Keepers
from harness.supervisor.sessions.launch import Launcher
from harness.supervisor.sessions.merging import Merging
from harness.supervisor.sessions.restoring import Restoring
from harness.supervisor.sessions.undo import Undo
from harness.supervisor.settings import Settings, follow
from harness.supervisor.stderr import say_without_fail
from harness.supervisor.threads import at_home
from harness.supervisor.upkeep import clock, epochs
from harness.supervisor.upkeep.alarm_watch import AlarmWatch
from harness.supervisor.upkeep.extents import Extents
from harness.supervisor.upkeep.fence_report import FenceReport
from harness.supervisor.upkeep.health import Disk
from harness.supervisor.upkeep.notifying import Notifying
from harness.supervisor.upkeep.space import Space
from harness.supervisor.upkeep.tasks import Upkeep
from harness.workspace import processes
from harness.workspace.errors import DamagedWorktree
from harness.workspace.worktrees import recorded_root

LOCK_WAIT = 3.0
ADOPTION_BUDGET = 8.0
_SELF_CHECK = 5.0
_PAUSE_FULL = 1.0
T = TypeVar("T")
_GRACE_S = 5.0
"""Seconds that keeping the states of sessions may take when asked to leave."""
_LAST_WRITES = 10.0


class Refused(Exception):
    """This supervisor must not run here; the message says why and what to do. ``code`` is the exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


def check_version(state: Path) -> None:
    """Refuse a state folder that a newer version wrote; mark a new one as ours (``VERSION``: ``{"format": N}``).

    Raises Refused, OSError.
    """
    path = state / "VERSION"
    try:
        found = json.loads(path.read_bytes())["format"]
    except FileNotFoundError:
        replace_file(path, json.dumps({"format": STATE_VERSION}).encode() + b"\n")
        return
    except (ValueError, KeyError, TypeError) as exc:
        told = (
            f'{path} does not say which version wrote this folder; if it is Watchfloor\'s, put {{"format":'
            f" {STATE_VERSION}}} there"
        )
        raise Refused(told, EXIT_REFUSED) from exc
    if not isinstance(found, int) or found > STATE_VERSION:
        raise Refused(
            f"the state folder {state} was written by a newer Watchfloor (state version {found}, this program knows"
            f" {STATE_VERSION}); upgrade watchfloor or set WATCHFLOOR_STATE to another folder",
            EXIT_REFUSED,
        )


def take_lock(path: Path) -> int:
    """Hold the supervisor's lock for the life of this process; a dying predecessor gets three seconds.

    Raises Refused.
    """
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    deadline = time.monotonic() + LOCK_WAIT
    while True:
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > deadline:
                os.close(fd)
                raise Refused(f"another supervisor holds {path}", EXIT_OTHER_LIVES) from None
            time.sleep(0.02)
        else:
            return fd


class Supervisor:
    """All parts of one running supervisor."""

    def __init__(
        self,
        folders: Folders,
        epoch: int,
        credentials: Credentials,
        settings: Settings,
        purse: Purse,
        clocks: Callable[[], clock.Ticks] = clock.read,
    ) -> None:
        self.folders = folders
        self.epoch = epoch
        self._clocks = clocks
        self.exit_code = EXIT_ASKED
        self._stop = asyncio.Event()
        self._closed = asyncio.Event()
        self.settings = settings
        self.purse = purse
        self.book = memory_book.open_book(folders.memory, self._remembered)
        self._unindexed: set[str] = set()
        self._index_event = asyncio.Event()
        self.orphaned = False
        self.fleet = Fleet(folders, self.purse.of)
        self.index = Index(folders.index)
        self.keepers = Keepers(folders, epoch)
        self.gates = Gates(credentials, lambda: self.settings.config, self.fleet, lambda: self.server.nudge())
        credentials.changed = self.gates.rekeyed
        self.fleet.at_gate = self.gates.words
        self.brains = Brains(folders, epoch, self.gates, lambda: self.settings.config, self._later)
        self.recall = Recall(self.book, self._later)
        self.granting = Granting(grant_book.open_book(folders.grants), self.recall)
        judging = Judging(self.settings, self.granting, self.fleet.approved)
        answers = Answers(self.book, self.recall, credentials.keys)
        self.call_flow = CallFlow(self.settings, judging, answers, self.granting, self._met)
        self.launcher = Launcher(folders, self.fleet, self.keepers, self.settings, credentials)
        self.merging = Merging(self.fleet, self.keepers, self.settings)
        self.caps = CapWaits(self.fleet, purse)
        self.space = Space(folders)
        self.conductor = Conductor(
            self.fleet,
            self.keepers,
            self.brains,
            self.call_flow,
            self.launcher,
            self.merging,
            self.recall,
            purse,
            self.caps,
            self._displaced,
        )
        self.approvals = Approvals(self.fleet, judging, credentials, purse, self.gates, self.caps)
        self.fence = FenceReport()
        self.disk = Disk(folders.state, lambda: self.server.nudge())
        parts = Parts(
            folders=folders,
            epoch=epoch,
            fleet=self.fleet,
            settings=self.settings,
            credentials=credentials,
            purse=self.purse,
            book=self.book,
            recall=self.recall,
            granting=self.granting,
            brains=self.brains,
            gates=self.gates,
            conductor=self.conductor,
            launcher=self.launcher,
            approvals=self.approvals,
            index=self.index,
            fence=self.fence,
            undo=Undo(self.keepers),
            restoring=Restoring(self.keepers, self.settings, self.launcher),
            merging=self.merging,
            continuing=Continuing(self.fleet, self.keepers, self.conductor, self.launcher),
            disk=self.disk,
            stop=self._asked_to_stop,
        )
        self.ops = Ops(parts)
        table = {**self.ops.table(), **BrainOps(parts).table()}
        self.server = Server(folders.supervisor_socket, self.fleet, table, self.ops.feed)
        self.ops.server = self.server
        self.extents = Extents(self.fleet, lambda: self.server.looked_at)
        self.watch = AlarmWatch(self.fleet, lambda: self.settings.config.alarms)
        self.notifying = Notifying(
            self.fleet,
            lambda: self.settings.config.notify,
            lambda: self.server.looked_at,
            credentials.keys,
            settings.problems,
            folders.state / "notices.json",
        )
        self.upkeep = Upkeep(settings.problems, self.server.nudge, self._broken)

    def _later(self, session: Session, seconds: float) -> None:
        self.conductor.later(session, seconds)

    def _remembered(self) -> None:
        """What is remembered has changed: whoever shows memory looks at it again."""
        for session in self.fleet:
            session.wake()

    async def _met(self, session: Session, exc: Exception) -> None:
        await self.conductor.met(session, exc)

    async def _asked_to_stop(self) -> None:
        """Stop, and return when everything is closed but the connection that asked."""
        (self.folders.runtime / STOPPING).write_text(str(os.getpid()), "ascii")
        self._stop.set()
        await self._closed.wait()

    def _displaced(self) -> None:
        print("supervisor: a keeper obeys a newer supervisor; this one leaves", file=sys.stderr, flush=True)
        self.exit_code = EXIT_OTHER_LIVES
        self._stop.set()

    def _broken(self) -> None:
        """Something it cannot serve without keeps failing: the guardian starts another one."""
        self.exit_code = EXIT_BROKEN
        self._stop.set()

    # -- start -------------------------------------------------------------------------------------

    async def _adopt(self) -> None:
        """Know every session: ended ones from the index where it is current, the others from their logs and keepers,
        all at once.
        """
        known = await self.index.open()
        names = await at_home(session_folders, self.folders.sessions)
        marks = await at_home(lambda: {n: mark_of(self.folders.session(n).log) for n in names if n in known})
        fresh: list[Session] = []
        for name in names:
            if not is_session_id(name):
                continue
            session = self.fleet.add(name)
            entry = known.get(name)
            if entry is not None and entry.mark == marks[name] and entry.mark:
                session.known_as(Indexed(entry.row, True))
                if self.purse.holding(name):
                    self.conductor.start(session)  # what it still holds is settled from its log
            else:
                if entry is not None:
                    session.known_as(Indexed(entry.row, False))
                fresh.append(session)
        for sid in known.keys() - self.fleet.sessions.keys():
            self.index.drop(sid)
        await asyncio.gather(*(self._first_look(s) for s in fresh))
        self.gates.begin()

    async def _first_look(self, session: Session) -> None:
        """Read one log; sessions that have not ended get their worker.

        Damage, and a defect of ours, stay with their session.
        """
        try:
            await session.read()
        except OpError as exc:
            session.unread(exc.message)
            self.upkeep.once(f"reading the log of session {session.sid}", lambda: self._second_look(session))
            return
        except (LogError, msgspec.DecodeError, OSError):
            return  # the session says so itself
        except Exception as exc:
            traceback.print_exc(file=sys.stderr)
            session.unreadable(f"a defect of Watchfloor met its log: {type(exc).__name__}: {exc}")
            return
        if session.foreign or session.aside is not None:
            return
        self.gates.recall(session)
        if not session.state.terminal or unfinished(session) or self.purse.holding(session.sid):
            self.conductor.start(session)

    async def _second_look(self, session: Session) -> None:
        """A log that did not answer at the start is taken up when it does: the others did not wait for it."""
        await session.readable()
        await self._first_look(session)
        session.touch()

    async def _taken_up(self) -> None:
        """Wait until every living session has its keeper, within a budget: a mute one does not hold up the others."""

        def settled() -> bool:
            return not any(
                s.work.task is not None and s.link is None and not s.held and not s.trouble and not s.finished
                for s in self.fleet
            )

        await self.fleet.until(settled, ADOPTION_BUDGET)

    def _ready(self) -> None:
        who = identify(os.getpid())
        assert who is not None
        text = json.dumps({"pid": who.pid, "start": who.start, "boot": who.boot, "epoch": self.epoch})
        replace_file(self.folders.runtime / "supervisor.json", f"{text}\n".encode())

    def _index_changes(self, session: Session) -> None:
        if session.sid in self.fleet.sessions and session.loaded and session.state.terminal and session.link is None:
            self._unindexed.add(session.sid)
            self._index_event.set()

    async def _mirror(self) -> None:
        """Put ended sessions into the index once their log is closed."""
        while True:
            await self._index_event.wait()
            await asyncio.sleep(0.2)
            self._index_event.clear()
            batch = self._unindexed
            self._unindexed = set()
            for sid in batch:
                session = self.fleet.sessions.get(sid)
                if session is None or session.link is not None or not session.state.terminal:
                    continue
                mark = await at_home(mark_of, session.folder.log)
                self.index.put(Entry(sid, mark, True, self.fleet.row(session)))

    async def _test_fence(self) -> None:
        """At the start, and again whenever the limits of calls change: what holds of them is part of its result."""
        changed = asyncio.Event()
        self.settings.subscribe(changed.set)
        tested: dict[str, int | None] | None = None
        while True:
            changed.clear()
            if (limits := self.settings.config.limits.to_wire()) != tested:
                tested = limits
                await self.fence.run(limits)
                self.server.nudge()
            await changed.wait()

    async def run(self, guardian: Identity | None, lock: int) -> int:
        """Serve until asked to stop; the exit code."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        self.fleet.observe(self._index_changes)
        self.settings.subscribe(self.server.nudge)
        await self._adopt()
        self.settings.subscribe(self.caps.poke)
        self.settings.subscribe(self.gates.rekeyed)
        keep = self.upkeep.keep
        keep("writing the index", self.index.run)
        keep("putting ended sessions into the index", self._mirror)
        keep("following policy and configuration", lambda: follow(self.settings, self.folders.config))
        keep("testing the fence", self._test_fence)
        keep("asking the sessions' keepers", lambda: self.keepers.pulse(self.fleet))
        keep("looking at the agents' processes", lambda: self.brains.watch(self.fleet))
        keep("looking at the disk", self.disk.watch)
        keep("looking for space", lambda: self.space.run(self._room))
        keep("waking what waits at a cap", self.caps.run)
        self.upkeep.finish("opening the ledger", self._keep_books)
        await self._taken_up()
        await self.server.listen()
        self._ready()
        keep("guarding the socket", lambda: self.server.guard(lambda: self._make_place(lock)))
        keep("sending changes to the screens", self.server.push)
        keep("watching over the state folder", lambda: self._still_ours(lock))
        keep("counting what sessions changed", self.extents.run)
        keep("watching for what wants a look", self.watch.run)
        keep("calling a person who does not watch", self.notifying.run)
        keep("watching the clock", lambda: clock.follow(self._time_went_on, self._clocks))
        if any(not s.finished for s in self.fleet):
            self.upkeep.once("loading the brains' nursery", self._warm)
        if guardian is not None:
            try:
                Watch(guardian, self._outlive)
            except ProcessLookupError:
                self._outlive()
        for session in self.fleet:
            if session.loaded and session.state.terminal:
                self._index_changes(session)
        await self._stop.wait()
        self.server.deaf()
        if not self.exit_code:
            await self._keep_states()
        await self._close()
        self._closed.set()
        await self.server.close()
        return self.exit_code

    async def _keep_states(self) -> None:
        """Asked to leave: what changed since a session's newest checkpoint becomes one, as far as the grace allows."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_GRACE_S):
                awake = [s for s in self.fleet if s.link is not None and not s.state.terminal]
                await asyncio.gather(*map(self.call_flow.at_leave, awake), return_exceptions=True)

    def _room(self) -> None:
        """The disk is full, or there is room again: every row says so, and whatever waited is tried at once."""
        self.fleet.full = self.space.problem
        for session in self.fleet:
            session.touch()
        self.server.nudge()

    async def _keep_books(self) -> None:
        """Open the ledger as soon as it can be; then everything that waits for money is looked at."""

        def opened() -> None:
            for session in self.fleet:
                session.wake()
            self.server.nudge()

        await self.purse.keep_open(opened)

    def _time_went_on(self, found: clock.Gap) -> None:
        """Timers count neither sleep nor a clock that was set: whoever waits for a time of day looks again now."""
        print(
            f"supervisor: {clock.words(found)}; every session looks again at what it waits for",
            file=sys.stderr,
            flush=True,
        )
        for session in self.fleet:
            if session.work.task is not None:
                self.upkeep.once("leaving out the time that nobody worked in", partial(self._leave_out, session, found))
                session.wake()
        self.server.nudge()

    @staticmethod
    async def _leave_out(session: Session, found: clock.Gap) -> None:
        with contextlib.suppress(LinkLost, OpError):  # a log that takes nothing now only counts that time
            await session.append(t.TimePassed(seconds=found.slept + found.moved, why=clock.words(found)))

    async def _warm(self) -> None:
        """Load the brains' nursery before it is first needed: it takes a second."""
        try:
            await self.brains.nursery.ensure()
        except OSError as exc:
            print(f"supervisor: the brains' nursery does not start: {exc}", file=sys.stderr, flush=True)

    def _outlive(self) -> None:
        """The guardian died: leave in order, and let a new one take over (unless we were asked to stop anyway)."""
        if self._stop.is_set():
            return
        print("supervisor: the guardian is gone; a new one is started and takes over", file=sys.stderr, flush=True)
        self.exit_code = EXIT_OTHER_LIVES
        self.orphaned = True
        self._stop.set()

    async def _still_ours(self, lock: int) -> None:
        """Leave when our state folder was removed or replaced: nothing we could do would be for anybody."""
        while True:
            await asyncio.sleep(_SELF_CHECK)
            if await self._lost(lock):
                return

    async def _lost(self, lock: int) -> bool:
        mine = os.fstat(lock)
        try:
            there = await at_home(os.stat, self.folders.supervisor_lock)
        except FileNotFoundError:
            there = None
        if there is not None and (there.st_dev, there.st_ino) == (mine.st_dev, mine.st_ino):
            return False
        print(
            f"supervisor: the state folder {self.folders.state} was removed or replaced; leaving",
            file=sys.stderr,
            flush=True,
        )
        self.exit_code = EXIT_OTHER_LIVES
        self._stop.set()
        return True

    async def _make_place(self, lock: int) -> None:
        """Make the runtime folder again as it was, after a logout or a cleaner took it, and let the keepers listen in
        it. Raises OSError, FolderError.
        """
        if await self._lost(lock):  # it may have lain in there, and nothing makes that anew
            return

        def folders() -> None:
            for folder in (self.folders.runtime, self.folders.keeper_sockets):
                ensure_private(folder)
            identity.claim_runtime(self.folders)
            self._ready()

        await at_home(folders)
        for session in self.fleet:
            if session.link is not None:
                with contextlib.suppress(ProcessLookupError):
                    self.keepers.call_back(session.state)

    async def _close(self) -> None:
        self.conductor.closing = True
        workers = [task for s in self.fleet if (task := s.work.task) is not None]
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        await self.upkeep.close()
        for session in self.fleet:
            if session.link is not None:
                session.link.abort()
        for session in self.fleet:
            if session.loaded:
                session.keep()
        with contextlib.suppress(TimeoutError):  # without a snapshot only the next start is slower
            async with asyncio.timeout(_LAST_WRITES):
                await asyncio.gather(*(s.kept() for s in self.fleet))
        await self.book.close()
        await self.granting.book.close()
        await self.index.flush()
        await self.index.close()
        await asyncio.gather(self.keepers.nursery.close(), self.brains.nursery.close())


def prepare(folders: Folders) -> int:
    """Make the folders private, see that they are ours to drive, take the lock; the lock's descriptor.

    Raises Refused, FolderError, OSError.
    """
    ensure_private(folders.state)
    if (foreign := identity.look(folders.state)) is not None:
        raise identity.ForeignState(foreign)
    for folder in (folders.runtime, folders.sessions, folders.worktrees, folders.archive, folders.keeper_sockets):
        ensure_private(folder)
    # without a configuration folder there are only the defaults, and nothing to watch
    with contextlib.suppress(OSError):
        folders.config.mkdir(mode=0o700, parents=True, exist_ok=True)
    check_version(folders.state)
    lock = take_lock(folders.supervisor_lock)
    try:
        _mark(folders)
        identity.claim_runtime(folders)
    except BaseException:
        os.close(lock)
        raise
    return lock


def _mark(folders: Folders) -> None:
    """Give a state folder without a mark its own: a new one, or one of an older version whose sessions lie where it is.

    Raises ForeignState.
    """
    if identity.read(folders.state) is not None:
        return
    here = os.path.realpath(folders.worktrees)
    for name in session_folders(folders.sessions):
        with contextlib.suppress(DamagedWorktree):
            root = recorded_root(folders.session(name).git / "private")
            if root is not None and os.path.realpath(root.parent) != here:
                raise identity.ForeignState(identity.without_mark(folders.state, root.parent.parent))
    identity.write(folders.state)


def _with_room(work: Callable[[], T]) -> T:
    """``work()``, again and again while the disk is full: a supervisor that left now would need somebody to start
    it.
    """
    said = False
    while True:
        try:
            return work()
        except OSError as exc:
            if not out_of_space(exc):
                raise
            if not said:
                print(
                    f"supervisor: no space left ({exc}); it starts as soon as there is room",
                    file=sys.stderr,
                    flush=True,
                )
                said = True
            time.sleep(_PAUSE_FULL)


def _new_guardian(credentials: int) -> None:
    """Start a guardian that takes over the credentials' memory."""
    os.set_inheritable(credentials, True)
    os.posix_spawn(
        sys.executable,
        [sys.executable, "-P", "-s", "-m", "harness.supervisor.guardian", "--credentials-fd", str(credentials)],
        os.environ,
        setsid=True,
    )


def main(argv: list[str] | None = None) -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description="Watchfloor's supervisor; started by its guardian.")
    parser.add_argument("--credentials-fd", type=int, default=-1)
    fd = parser.parse_args(argv).credentials_fd
    os.umask(0o077)
    heap.one_arena()
    say_without_fail()
    guardian = identify(os.getppid()) if fd >= 0 else None
    if fd >= 0:
        os.set_inheritable(fd, False)
    kernel.hide_memory()
    folders = resolve()
    try:
        lock = _with_room(lambda: prepare(folders))
        epoch = _with_room(lambda: epochs.advance(folders))
    except Refused as exc:
        print(f"refused: {exc}" if exc.code == EXIT_REFUSED else f"supervisor: {exc}", file=sys.stderr, flush=True)
        return exc.code
    except (OSError, FolderError, epochs.EpochUnknown) as exc:
        # that may end by itself, so the guardian tries again
        system = isinstance(exc.__cause__ if isinstance(exc, FolderError) else exc, OSError)
        print(f"{'cannot serve' if system else 'refused'}: {' '.join(str(exc).split())}", file=sys.stderr, flush=True)
        return EXIT_BROKEN if system else EXIT_REFUSED

    async def serve() -> tuple[int, bool]:
        settings = Settings(folders)
        settings.check()
        purse = Purse(lambda: Bookkeeper.open(folders.ledger, lambda: settings.config.caps))
        await purse.open()
        supervisor = Supervisor(folders, epoch, Credentials(fd), settings, purse)
        try:
            return await supervisor.run(guardian, lock), supervisor.orphaned
        finally:
            processes.end_all()
            await purse.close()

    try:
        code, orphaned = asyncio.run(serve())
    except Exception as exc:
        traceback.print_exc(file=sys.stderr)
        print(f"cannot serve: {type(exc).__name__}: {exc}", file=sys.stderr, flush=True)
        code = EXIT_BROKEN
        orphaned = False
    if orphaned and folders.state.is_dir():
        _new_guardian(fd)
    return code


if __name__ == "__main__":
    ended = main()
    sys.stdout.flush()
    sys.stderr.flush()
    # whatever thread still waits for something: a supervisor that does not serve must not stay, and holds the lock
    os._exit(ended)
