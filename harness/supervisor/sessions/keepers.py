"""Keepers: taken over where they live, spawned where they do not.

A keeper that cannot be reached disturbs its own session only.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path

from harness.domain.problems import Trouble
from harness.keeper.loop.requests import Shutdown
from harness.linux.proc import Identity, alive, look
from harness.projections.state.session_state import SessionState
from harness.protocol.config.config import Config
from harness.protocol.keeper_requests import KeeperHello, Ping, Subscribe
from harness.protocol.paths import Folders
from harness.protocol.spawning import SpawnKeeper
from harness.supervisor.base.errors import LinkLost, OpError
from harness.supervisor.base.threads import at_home
from harness.supervisor.fleet import homes
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.fleet.session import Session
from harness.supervisor.processes.fork_server_client import ForkServer
from harness.supervisor.processes.keeper_link import KeeperLink
from harness.supervisor.processes.process import end

CONNECT_BUDGET = 2.0
_LEAVE_S = 10.0
"""Seconds a keeper has to leave when asked."""
_KILLED_S = 5.0
"""Seconds a keeper has to be gone when killed."""
_CATCH_UP = 60.0
PULSE_S = 3.0
"""Seconds between two questions to a keeper."""
MUTE_S = 8.0
"""Seconds without an answer of a keeper until its row may say so."""
_RARELY = 10
"""Of so many questions, one to a keeper that has nothing to do: it is only looked at otherwise, which costs it nothing.
"""
SILENT_S = 300.0
"""Seconds until a keeper that says nothing is ended: its log and its calls are left as by any death of a keeper."""


async def _nothing(session: Session) -> None:
    """Nothing has to be kept."""


def _never() -> bool:
    return False


class Keepers:
    """``take_up`` gives a session its link, whatever it takes."""

    def __init__(self, folders: Folders, epoch: int, config: Callable[[], Config]) -> None:
        self._folders = folders
        self._epoch = epoch
        self._config = config
        self._tasks: set[asyncio.Task[None]] = set()
        self.before_end: Callable[[Session], Awaitable[None]] = _nothing
        """What is to be done while a keeper that was told to end is still there; whoever runs the calls sets it."""
        self.leaving: Callable[[], bool] = _never
        """Whether nobody is to take a keeper's place any more; whoever ends the supervisor sets it."""
        self._stopped: dict[str, float] = {}
        """Since when a keeper was found stopped whenever it was called."""
        self.fork_server = ForkServer("harness.keeper.fork_server", network=False, isolated=True, on_push=self._ignore)

    @staticmethod
    def _ignore(message: dict[str, object]) -> None:
        """A keeper fork server pushes nothing that we act on."""

    async def take_up(self, session: Session) -> None:
        """Connect to the session's keeper, spawning it when none lives, and fold up to its head.

        Raises LogError (damaged log), OpError (``damaged``, ``already_running``, ``stale_epoch``, …), LinkLost or
        OSError.
        """
        if session.link is not None:
            return
        if (session.damaged or not session.loaded) and session.folder.log.is_dir():
            await session.read()
        if session.foreign:
            raise OpError("foreign", session.foreign)
        if session.aside is not None:
            raise OpError("damaged", session.aside.reason)
        session.begun()
        try:
            await self._connect(session)
        except (OSError, LinkLost):
            await self.past_stopped(session)
            await self._spawn(session)
            await self._connect(session)
        self._stopped.pop(session.sid, None)

    async def past_stopped(self, session: Session) -> None:
        """End a keeper that has been stopped for long. Raises OpError ``mute`` for one that is not stopped as long."""
        k = session.state.keeper
        who = Identity(k.pid, k.start, k.boot) if k is not None else None
        seen = look(who) if who is not None and alive(who) else None
        if who is None or seen is None or not seen.stopped:
            self._stopped.pop(session.sid, None)
            return
        now = time.monotonic()
        since = self._stopped.setdefault(session.sid, now)
        if now - since < self._config().processes.stopped:
            raise OpError("mute", f"process {who.pid} is stopped")
        await end(who, (signal.SIGKILL, _KILLED_S))

    async def _spawn(self, session: Session) -> None:
        if self.leaving():
            raise OpError("shutting_down", "Watchfloor is being stopped")
        fault = os.environ.get("WATCHFLOOR_FAULT")
        try:
            await self.fork_server.spawn(
                SpawnKeeper(session.sid, str(self._folders.state), str(self._folders.runtime), fault)
            )
        except OpError as exc:
            if exc.code != "already_running":
                raise
            self.call_back(session.state)
            await self._appear(session.folder.keeper_socket)

    @staticmethod
    def call_back(state: SessionState) -> None:
        """A living keeper whose socket vanished binds it again on SIGUSR1."""
        k = state.keeper
        if k is not None and alive(Identity(k.pid, k.start, k.boot)):
            os.kill(k.pid, signal.SIGUSR1)

    @staticmethod
    async def _appear(path: Path) -> None:
        for _ in range(100):
            if os.access(path, os.F_OK):
                return
            await asyncio.sleep(0.02)
        raise OpError(
            "lost",
            f"a keeper holds the session's lock but does not answer at {path}",
            "look for a stopped process of that session",
        )

    async def _connect(self, session: Session) -> None:
        link = KeeperLink(
            session.sid, session.feed, lambda: self._lost(session, link), lambda: self._ends(session, link)
        )
        try:
            where = await at_home(homes.place, session.folder.root)
            hello = await link.open(session.folder.keeper_socket, where, self._epoch, CONNECT_BUDGET)
            if hello.folder != where:
                raise OpError(
                    "foreign",
                    f"the keeper at {session.folder.keeper_socket} keeps another state folder's session of this id",
                )
            await self._follow(session, link, hello)
        except BaseException:
            link.abort()
            raise

    async def _follow(self, session: Session, link: KeeperLink, hello: KeeperHello) -> None:
        if hello.head < session.state.seq:  # what we folded is no longer what the log holds
            await at_home(session.load)
        session.joined(link)
        if hello.poisoned:
            session.troubles.fail("keeper", Trouble("unwritable", hello.poisoned))
        await link.ask(Subscribe(session.state.seq))
        async with asyncio.timeout(_CATCH_UP):
            await session.reached(hello.head)
        session.touch()

    async def pulse(self, fleet: Fleet) -> None:
        """Ask every keeper now and then whether it is there, until cancelled: one that is frozen says nothing, and its
        row must not say *running*.
        """
        asking: dict[str, asyncio.Task[None]] = {}
        for turn in itertools.count():
            await asyncio.sleep(PULSE_S)
            asking = {sid: task for sid, task in asking.items() if not task.done()}
            for at, session in enumerate(fleet):
                if session.link is None or session.sid in asking:
                    continue
                if (turn + at) % _RARELY == 0 or self._matters(session, session.link):
                    asking[session.sid] = asyncio.get_running_loop().create_task(self._ask(session, session.link))

    @staticmethod
    def _matters(session: Session, link: KeeperLink) -> bool:
        """True when somebody counts on the keeper now, or something seems wrong with it."""
        if (
            session.thinking.brain is not None
            or session.doing_calls
            or not session.blocks.keys().isdisjoint(("keeper", "vault"))
        ):
            return True
        k = link.hello
        seen = look(Identity(k.pid, k.start, k.boot)) if k is not None else None
        return seen is None or seen.stopped

    async def _ask(self, session: Session, link: KeeperLink) -> None:
        since = datetime.now(UTC)
        silent = 0.0
        answer = asyncio.ensure_future(link.ask(Ping(), None))
        try:
            while not (await asyncio.wait({answer}, timeout=MUTE_S if not silent else PULSE_S))[0]:
                # in steps, so that time in which we were frozen is not held against it
                silent += PULSE_S if silent else MUTE_S
                await self.mute(session, link, since, silent)
            told = await answer
            waits = told.waits or ""
            lacks = told.lacks or ""
        except (OpError, LinkLost):
            # one that is gone is taken up again
            waits = ""
            lacks = ""
        finally:
            answer.cancel()
            session.unblock("keeper")
        if waits:
            session.block("vault", Trouble("vault", waits))
        else:
            session.unblock("vault")
        if lacks:
            session.block("place", Trouble("scarce", lacks))
        else:
            session.unblock("place")

    async def mute(self, session: Session, link: KeeperLink, since: datetime, silent: float) -> None:
        """Say of a keeper that it does not answer, and end it when that lasts; one that a disk holds is left to it,
        since no signal reaches it.
        """
        if (k := link.hello) is None or (seen := look(who := Identity(k.pid, k.start, k.boot))) is None:
            return
        if not seen.stopped and silent <= MUTE_S:
            return  # it may be us who were held up: its answer is looked for once more
        how = "has been stopped" if seen.stopped else "has not answered"
        session.block(
            "keeper",
            Trouble("mute_disk" if seen.state == "D" else "mute", f"process {k.pid} {how} since {since:%H:%M:%S} UTC"),
        )
        if seen.state == "D" or silent < (self._config().processes.stopped if seen.stopped else SILENT_S):
            return
        print(
            f"supervisor: keeper {k.pid} of session {session.sid} {how} since {since:%H:%M:%S} UTC and is ended",
            file=sys.stderr,
            flush=True,
        )
        session.work.keeper_falls.forgive()  # what it owed an answer to failed because of it
        await end(who, (signal.SIGKILL, _KILLED_S))

    @staticmethod
    def _lost(session: Session, link: KeeperLink) -> None:
        if session.link is link:
            session.lost()

    def _ends(self, session: Session, link: KeeperLink) -> None:
        """Its keeper was told to end, and waits a few seconds for what has to be kept before."""
        task = asyncio.get_running_loop().create_task(self._let_go(session, link))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _let_go(self, session: Session, link: KeeperLink) -> None:
        try:
            await self.before_end(session)
        finally:
            with contextlib.suppress(OpError, LinkLost):
                await link.ask(Shutdown(kill=True), _LEAVE_S)

    async def shut(self, session: Session, kill: bool) -> None:
        """Ask the keeper to close its log and leave; one that does not is killed.

        Returns when it is gone; silent when it was already.
        """
        link = session.link
        if link is None:
            return
        patience = _LEAVE_S + session.state.jobs.grace_s
        try:
            await link.ask(Shutdown(kill), patience)
        except (LinkLost, OpError):
            link.abort()
            patience = 0.0
        if (k := link.hello) is not None and not await end(
            Identity(k.pid, k.start, k.boot), (None, patience), (signal.SIGKILL, _KILLED_S)
        ):
            print(
                f"supervisor: keeper {k.pid} of session {session.sid} did not leave and cannot be killed",
                file=sys.stderr,
                flush=True,
            )
