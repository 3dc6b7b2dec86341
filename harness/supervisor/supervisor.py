"""All parts of one running supervisor, and its life: it adopts what lives and serves until asked to stop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from collections.abc import Callable
from functools import partial

from harness.events import types as t
from harness.linux.proc import Identity
from harness.protocol import stop_mark
from harness.protocol.paths import Folders
from harness.supervisor.base.errors import LinkLost, OpError
from harness.supervisor.base.settings import Settings, follow
from harness.supervisor.calls.answers import Answers
from harness.supervisor.calls.approvals import Approvals
from harness.supervisor.calls.call_flow import CallFlow
from harness.supervisor.calls.judging import Judging
from harness.supervisor.calls.queue import grant_book
from harness.supervisor.calls.queue.granting import Granting
from harness.supervisor.calls.recall import Recall
from harness.supervisor.endpoints.credentials import Credentials
from harness.supervisor.endpoints.endpoint_gates import Gates
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.fleet.index import Index
from harness.supervisor.fleet.session import Session
from harness.supervisor.guardian import EXIT_ASKED, EXIT_BROKEN, EXIT_OTHER_LIVES
from harness.supervisor.memories import book as memory_book
from harness.supervisor.money.budget_service import BudgetService
from harness.supervisor.money.cap_waits import CapWaits
from harness.supervisor.processes.process import Watch
from harness.supervisor.serving.client_ops import ClientOps
from harness.supervisor.serving.ops.brain_ops import BrainOps
from harness.supervisor.serving.parts import Parts
from harness.supervisor.serving.server import Server
from harness.supervisor.sessions.begin.launch import Launcher
from harness.supervisor.sessions.brains import Brains
from harness.supervisor.sessions.conductor import Conductor
from harness.supervisor.sessions.continuing import Continuing
from harness.supervisor.sessions.due_work import DueWork
from harness.supervisor.sessions.ending import Ending
from harness.supervisor.sessions.keepers import Keepers
from harness.supervisor.sessions.restoring import Restoring
from harness.supervisor.sessions.taking.merging import Merging
from harness.supervisor.sessions.taking.pulling import Pulling
from harness.supervisor.sessions.taking.reviewed import Reviewed
from harness.supervisor.sessions.undo import Undo
from harness.supervisor.upkeep import clock
from harness.supervisor.upkeep.alarm_watch import AlarmWatch
from harness.supervisor.upkeep.extents import Extents
from harness.supervisor.upkeep.first_look import FirstLook
from harness.supervisor.upkeep.health import Disk
from harness.supervisor.upkeep.index_mirror import IndexMirror
from harness.supervisor.upkeep.job_lines import JobLines
from harness.supervisor.upkeep.merged_watch import MergedWatch
from harness.supervisor.upkeep.notifying import Notifying
from harness.supervisor.upkeep.own_place import OwnPlace
from harness.supervisor.upkeep.sandbox_report import SandboxReport
from harness.supervisor.upkeep.space import Space
from harness.supervisor.upkeep.tasks import Upkeep

_GRACE_S = 5.0
"""Seconds that keeping the states of sessions may take when asked to leave."""
_TOGETHER_S = 1.0
"""Seconds within which processes that are all told to end hear of it."""
_LAST_WRITES = 10.0


class Supervisor:
    """All parts of one running supervisor."""

    def __init__(
        self,
        folders: Folders,
        epoch: int,
        credentials: Credentials,
        settings: Settings,
        budget_service: BudgetService,
        clocks: Callable[[], clock.Ticks] = clock.read,
    ) -> None:
        self.folders = folders
        self.epoch = epoch
        self._clocks = clocks
        self.exit_code = EXIT_ASKED
        self._stop = asyncio.Event()
        self._closed = asyncio.Event()
        self.settings = settings
        self.budget_service = budget_service
        self.orphaned = False
        self.fleet = Fleet(folders, self.budget_service.of)
        self.index = Index(folders.index)
        self._mirror = IndexMirror(self.fleet, self.index)
        self.keepers = Keepers(folders, epoch, lambda: self.settings.config)
        self.keepers.before_end = self._before_end
        self.keepers.leaving = self._stop.is_set
        self.gates = Gates(credentials, lambda: self.settings.config, self.fleet, lambda: self.server.nudge())
        credentials.changed = self.gates.rekeyed
        self.fleet.at_gate = self.gates.requests.words
        self.caps = CapWaits(self.fleet, budget_service)
        self.space = Space(folders)
        self.sandbox = SandboxReport()
        self.disk = Disk(folders.state, lambda: self.server.nudge())
        self._take_calls(credentials)
        self._take_sessions(credentials)
        self._serve(credentials)
        self._watch_over(credentials)

    def _take_calls(self, credentials: Credentials) -> None:
        self.book = memory_book.open_book(self.folders.memory, self._remembered)
        self.recall = Recall(self.book, self._later)
        self.granting = Granting(grant_book.open_book(self.folders.grants), self.recall)
        judging = Judging(self.settings, self.granting, self.fleet.approved)
        answers = Answers(self.book, self.recall, credentials.keys, lambda: self.settings.config.memory)
        self.call_flow = CallFlow(self.settings, judging, answers, self.granting, self._met)
        self.approvals = Approvals(self.fleet, judging, credentials, self.budget_service, self.gates, self.caps)

    def _take_sessions(self, credentials: Credentials) -> None:
        self.brains = Brains(self.folders, self.epoch, self.gates, lambda: self.settings.config, self._later)
        self.launcher = Launcher(self.folders, self.fleet, self.keepers, self.settings, credentials)
        reviewed = Reviewed()
        self.merging = Merging(self.fleet, self.keepers, self.settings, reviewed)
        self.pulling = Pulling(self.fleet, self.keepers, self.settings, reviewed)
        ending = Ending(self.keepers, self.brains, self.call_flow, self.merging, self.pulling, self.budget_service)
        due = DueWork(
            self.keepers,
            self.budget_service,
            ending,
            self.launcher,
            self.recall,
            self.caps,
            self.brains,
            self.call_flow,
            lambda: self.sandbox.refuse(strict=self.settings.config.limits.strict),
        )
        self.conductor = Conductor(due, self.budget_service, self._displaced)

    def _serve(self, credentials: Credentials) -> None:
        restoring = Restoring(self.keepers, self.settings, self.launcher)
        parts = Parts(
            folders=self.folders,
            epoch=self.epoch,
            fleet=self.fleet,
            settings=self.settings,
            credentials=credentials,
            budget_service=self.budget_service,
            book=self.book,
            recall=self.recall,
            granting=self.granting,
            brains=self.brains,
            gates=self.gates,
            keepers=self.keepers,
            conductor=self.conductor,
            launcher=self.launcher,
            approvals=self.approvals,
            index=self.index,
            sandbox=self.sandbox,
            undo=Undo(self.keepers, restoring),
            restoring=restoring,
            merging=self.merging,
            pulling=self.pulling,
            continuing=Continuing(self.fleet, self.keepers, self.conductor, self.launcher),
            disk=self.disk,
            stop=self._asked_to_stop,
        )
        self.ops = ClientOps(parts)
        table = {**self.ops.table(), **BrainOps(parts).table()}
        self.server = Server(self.folders.supervisor_socket, self.fleet, table, self.ops.feed)
        self.ops.server = self.server

    def _watch_over(self, credentials: Credentials) -> None:
        self.extents = Extents(self.fleet, lambda: self.server.looked_at)
        self.merged_watch = MergedWatch(self.fleet, lambda: self.server.looked_at)
        self.job_lines = JobLines(self.fleet, lambda: self.server.looked_at)
        self.watch = AlarmWatch(self.fleet, lambda: self.settings.config.alarms)
        self.notifying = Notifying(
            self.fleet,
            lambda: self.settings.config.notify,
            lambda: self.server.looked_at,
            credentials.keys,
            self.settings.problems,
            self.folders.state / "notices.json",
        )
        self.upkeep = Upkeep(self.settings.problems, self.server.nudge, self._broken)

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
        with contextlib.suppress(OSError):  # who asked has it stopped all the same, on a full disk too
            stop_mark.write(self.folders.runtime, os.getpid())
        if self.orphaned:  # it was leaving for another one to take over, which nobody wants any more
            self.orphaned = False
            self.exit_code = EXIT_ASKED
        self._stop.set()
        await self._closed.wait()

    def _displaced(self) -> None:
        print("supervisor: a keeper obeys a newer supervisor; this one leaves", file=sys.stderr, flush=True)
        self._taken_over()

    def _taken_over(self) -> None:
        """Leave the fleet to whoever has it now."""
        self.exit_code = EXIT_OTHER_LIVES
        self._stop.set()

    def _broken(self) -> None:
        """Something it cannot serve without keeps failing: the guardian starts another one."""
        self.exit_code = EXIT_BROKEN
        self._stop.set()

    # -- start -------------------------------------------------------------------------------------

    async def _test_sandbox(self) -> None:
        """At the start, and again whenever the limits of calls change: what holds of them is part of its result."""
        changed = asyncio.Event()
        self.settings.subscribe(changed.set)
        tested: dict[str, int | None] | None = None
        while True:
            changed.clear()
            if (limits := self.settings.config.limits.to_wire()) != tested:
                tested = limits
                await self.sandbox.run(limits)
                self.server.nudge()
            await changed.wait()

    async def run(self, guardian: Identity | None, lock: int) -> int:
        """Serve until asked to stop; the exit code."""
        loop = asyncio.get_running_loop()
        place = OwnPlace(self.folders, self.epoch, lock, self.fleet, self.keepers, self._taken_over)
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop.set)
        self.fleet.observe(self._mirror.note)
        self.settings.subscribe(self.server.nudge)
        first = FirstLook(
            self.folders, self.fleet, self.index, self.budget_service, self.gates, self.conductor, self.upkeep
        )
        await first.run()
        self.settings.subscribe(self.caps.poke)
        self.settings.subscribe(self.gates.rekeyed)
        keep = self.upkeep.keep
        keep("writing the index", self.index.run)
        keep("putting ended sessions into the index", self._mirror.run)
        keep("following policy and configuration", lambda: follow(self.settings, self.folders.config))
        keep("testing the sandbox", self._test_sandbox)
        keep("asking the sessions' keepers", lambda: self.keepers.pulse(self.fleet))
        keep("looking at the agents' processes", lambda: self.brains.watch(self.fleet))
        keep("looking at the disk", self.disk.watch)
        keep("looking for space", lambda: self.space.run(self._room))
        keep("waking what waits at a cap", self.caps.run)
        self.upkeep.finish("opening the ledger", self._keep_books)
        await first.settled()
        await self.server.listen()
        place.ready()
        keep("guarding the socket", lambda: self.server.guard(place.make_again))
        keep("sending changes to the screens", self.server.push)
        keep("watching over the state folder", place.watch)
        keep("counting what sessions changed", self.extents.run)
        keep("looking for merged work", self.merged_watch.run)
        keep("reading what jobs print", self.job_lines.run)
        keep("watching for what wants a look", self.watch.run)
        keep("calling a person who does not watch", self.notifying.run)
        keep("watching the clock", lambda: clock.follow(self._time_went_on, self._clocks))
        if any(not s.finished for s in self.fleet):
            self.upkeep.once("loading the brains' fork server", self._warm)
        if guardian is not None:
            try:
                Watch(guardian, self._outlive)
            except ProcessLookupError:
                self._outlive()
        for session in self.fleet:
            if session.loaded and session.state.terminal:
                self._mirror.note(session)
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
        awake = [s for s in self.fleet if s.link is not None and not s.state.terminal]
        await asyncio.gather(*map(self._keep_state, awake), return_exceptions=True)

    async def _before_end(self, session: Session) -> None:
        """A keeper was told to end. When we are told so too, within a second of it, it goes with us: let go before, it
        would be replaced.
        """
        await self._keep_state(session)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_TOGETHER_S):
                await self._stop.wait()
        if self._stop.is_set():
            await self._closed.wait()

    async def _keep_state(self, session: Session) -> None:
        if not session.state.terminal:
            with contextlib.suppress(TimeoutError, OpError, LinkLost):
                async with asyncio.timeout(_GRACE_S):
                    await self.call_flow.at_leave(session)

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

        await self.budget_service.keep_open(opened)

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
        """Load the brains' fork server before it is first needed: it takes a second."""
        try:
            await self.brains.fork_server.ensure()
        except OSError as exc:
            print(f"supervisor: the brains' fork server does not start: {exc}", file=sys.stderr, flush=True)

    def _outlive(self) -> None:
        """The guardian died: leave in order, and let a new one take over (unless we were asked to stop anyway)."""
        if self._stop.is_set():
            return
        print("supervisor: the guardian is gone; a new one is started and takes over", file=sys.stderr, flush=True)
        self.exit_code = EXIT_OTHER_LIVES
        self.orphaned = True
        self._stop.set()

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
        await asyncio.gather(self.keepers.fork_server.close(), self.brains.fork_server.close())
