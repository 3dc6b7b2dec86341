"""Brains: leased, forked when there is something to think about, watched to their end, restarted with limits."""

from __future__ import annotations

import asyncio
import secrets
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import msgspec

from harness.agents.agent_spec import Spec
from harness.domain.calls.approval_kind import Request
from harness.domain.decision import Decision
from harness.domain.problems import Trouble
from harness.domain.states import Desired
from harness.events import types as t
from harness.keeper.loop.requests import EndLease, GrantLease
from harness.linux.proc import Identity, alive, look
from harness.protocol.config.config import Config
from harness.protocol.connection.op import reader
from harness.protocol.paths import Folders
from harness.protocol.spawning import Exited, SpawnAgent
from harness.supervisor.base import ids
from harness.supervisor.base.errors import Later, LinkLost, OpError
from harness.supervisor.calls.session_folder import HELD_S, ailing, held_for
from harness.supervisor.endpoints.credentials import fingerprint
from harness.supervisor.endpoints.endpoint_gates import Gates
from harness.supervisor.endpoints.known_models import KnownModels
from harness.supervisor.fleet import next_step
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.fleet.session import Session
from harness.supervisor.fleet.thinking import Brain
from harness.supervisor.processes.fork_server_client import ForkServer
from harness.supervisor.processes.process import Watch

_TERM_GRACE = 5.0
_FENCED = 75
_CODE_TRIES = 40
_FENCED_S = 1.0
"""Longest pause after a brain that found no keeper, of which `Thinking.fenced` takes some before it counts as a
fall.
"""
LOOK_S = 3.0
"""Seconds between two looks at a brain."""
STOPPED_S = 6.0
"""Seconds until a brain that is stopped is shown so."""
_MARGIN_S = 60.0
"""Seconds beyond the time that a brain gives a reply."""


def _exit_text(code: int | None) -> str:
    """How a brain ended, as its lease says it."""
    if code is None or code == 0:
        return "exited"
    return f"killed by signal {-code}" if code < 0 else f"exit code {code}"


def _fall_text(code: int | None) -> str:
    """Why a brain is gone that had work to do."""
    if code is None:
        return "it died"
    return f"killed by signal {-code}" if code < 0 else f"it left without a word (exit code {code})"


_exited = reader(Exited)


class Brains:
    """Starts, adopts, watches and ends brains."""

    def __init__(
        self,
        folders: Folders,
        epoch: int,
        gates: Gates,
        config: Callable[[], Config],
        later: Callable[[Session, float], None],
    ) -> None:
        self._folders = folders
        self._epoch = epoch
        self._gates = gates
        self._config = config
        self._later = later
        self._codes: dict[int, int] = {}
        self.models = KnownModels()
        self.fork_server = ForkServer(
            "harness.brain.brain_fork_server", network=True, isolated=False, on_push=self._pushed
        )

    def _pushed(self, message: dict[str, object]) -> None:
        if message.get("push") == "exited":
            exited = _exited(message)
            self._codes[exited.pid] = exited.code

    async def step(self, session: Session) -> None:
        """Bring the session's brain in line with its log: adopt or bury, then what is due: ask about its park, wait, or
        wake.
        """
        await self._gates.requests.carry(session)
        if session.thinking.brain is None and session.state.lease is not None:
            await self._adopt(session, session.state.lease)
        self._mended(session)
        what = next_step.due(session.state, session.track)
        if isinstance(what, next_step.Ask):
            await self.ask(session, what.kind, what.title, what.detail, what.options)
        if session.thinking.brain is not None:
            return
        if not isinstance(what, next_step.Wake):
            self._gates.left(session)
        elif (pause := session.thinking.not_before - time.monotonic()) > 0:
            self._later(session, pause)
        elif self._gates.may_wake(session):
            await self._wake(session)
        else:
            await self._gates.requests.carry(session)

    @staticmethod
    def _mended(session: Session) -> None:
        """A brain that asks its model or did something, or a session that wants none, has nothing to show any more of
        those that died.
        """
        s = session.state
        begun = (session.track.request_gen, session.track.worked_gen)
        if s.parked is not None or s.desired != Desired.RUNNING or (s.lease is not None and s.lease.gen in begun):
            session.unblock("brain")

    async def _adopt(self, session: Session, lease: t.LeaseGranted) -> None:
        who = Identity(lease.pid, lease.start, lease.boot)
        brain = Brain(lease.gen, who, "")
        try:
            brain.watch = Watch(who, lambda: self.ended(session, brain))
        except (ProcessLookupError, OSError):
            await self._end_lease(session, lease.gen, "its process is gone", None)
            return
        brain.leased.set()
        session.thinking.brain = brain
        session.touch()

    async def _wake(self, session: Session) -> None:
        intent = session.state.intent
        assert intent is not None
        key = self._gates.credential(session.state)
        if key is None:
            return  # it went this moment; the gate says so at the next step
        if why := await ailing(session):
            raise Later(HELD_S, held_for(why))
        gen = session.state.lease_gen + 1
        secret = secrets.token_hex(16)
        config = self._config()
        profile = config.profile(intent.model)
        spec = Spec(
            sid=session.sid,
            folder=str(session.folder.root),
            keeper_socket=str(session.folder.keeper_socket),
            supervisor_socket=str(self._folders.supervisor_socket),
            gen=gen,
            secret=secret,
            credential=key,
            endpoint=fingerprint(key),
            deadlines=(config.model.reply_first_s, config.model.reply_silence_s, config.model.reply_total_s),
            model=intent.model,
            max_tokens=config.model.max_tokens,
            context_tokens=profile.working_tokens or config.model.context_tokens,
            api_clearing=profile.api_clearing,
            api_compaction=profile.api_compaction,
            api_memory=profile.api_memory,
            cache_hour=profile.cache_hour,
            limits=self.models.find(intent.base_url, intent.model),
        )
        try:
            who = await self.fork_server.spawn(SpawnAgent(msgspec.to_builtins(spec)), wait=60.0)
        except (OpError, LinkLost, OSError) as exc:
            await self._fell(session, f"it could not be started: {exc}")
            return
        brain = Brain(gen, who, secret)
        try:
            brain.watch = Watch(who, lambda: self.ended(session, brain))
        except ProcessLookupError:
            await self._fell(session, "it ended at once")
            return
        if session.quiet or session.state.desired == Desired.STOPPED:
            # the stop came while it was forked; our requests reach the log in their order, so no lease follows it
            brain.watch.signal(signal.SIGKILL)
            self._later(session, 0.5)  # the stop may not reach the log, and then somebody has to think
            return
        session.thinking.brain = brain
        try:
            await session.keeper().ask(GrantLease(gen, self._epoch, secret, who.pid, who.start, who.boot))
            await session.until(lambda: session.state.lease_gen >= gen)
        except (OpError, LinkLost):
            brain.watch.signal(signal.SIGKILL)
            raise
        brain.leased.set()
        session.touch()

    async def watch(self, fleet: Fleet) -> None:
        """Look at every brain now and then, until cancelled: whatever stops one stops its own deadlines too."""
        while True:
            await asyncio.sleep(LOOK_S)
            for session in fleet:
                self.look(session)

    def look(self, session: Session) -> None:
        """Say of a brain that it is stopped, and end one that stays so, or does nothing at all for longer than a reply
        may take; another one goes on then.

        Time is counted in looks, so that none is held against a brain in which nobody looked.
        """
        brain = session.thinking.brain
        seen = look(brain.who) if brain is not None else None
        if brain is None or seen is None:
            session.unblock("frozen")
            return
        brain.stopped_s = brain.stopped_s + LOOK_S if seen.stopped else 0.0
        if brain.stopped_s >= STOPPED_S:
            since = datetime.now(UTC) - timedelta(seconds=brain.stopped_s)
            if "frozen" not in session.blocks:
                session.block(
                    "frozen", Trouble("frozen", f"process {brain.who.pid} has been stopped since {since:%H:%M:%S} UTC")
                )
        else:
            session.unblock("frozen")
        asked = session.state.request if session.track.request_gen == brain.gen else None
        # one that cannot put its reply on record tries again
        idle = asked is not None and seen == brain.seen and "keeper" not in session.blocks
        brain.awaited_s = brain.awaited_s + LOOK_S if idle else 0.0
        brain.seen = seen
        if brain.stopped_s >= (stopped := self._config().processes.stopped):
            self._give_up(brain, f"it was stopped for {stopped} s, and ended")
        elif brain.awaited_s > (limit := self._config().model.reply_total_s + _MARGIN_S):
            self._give_up(brain, f"it did nothing while a reply was awaited for {limit:.0f} s, and was ended")

    @staticmethod
    def _give_up(brain: Brain, why: str) -> None:
        brain.why = why
        if brain.watch is not None:
            brain.watch.signal(signal.SIGKILL)

    def ended(self, session: Session, brain: Brain) -> None:
        """The process is gone; the session's worker ends the lease at its next step."""
        brain.gone.set()
        if session.thinking.brain is brain:
            session.thinking.brain = None
            brain.exit_code = self._codes.pop(brain.who.pid, None)
            session.thinking.buried.append(brain)
            self._gates.unsent(session)
        session.touch()

    async def bury(self, session: Session) -> None:
        """End the leases of brains that are gone and count the ends that were no ends of work."""
        while session.thinking.buried:
            brain = session.thinking.buried[0]
            # the fork server's word about the exit code may be on its way
            for _ in range(_CODE_TRIES if brain.secret else 0):
                if brain.exit_code is not None:
                    break
                await asyncio.sleep(0.005)
                brain.exit_code = self._codes.pop(brain.who.pid, None)
            code = brain.exit_code
            lease = session.state.lease
            if lease is not None and lease.gen == brain.gen:
                await self._end_lease(session, brain.gen, brain.why or _exit_text(code), code)
            session.thinking.buried.pop(0)
            s = session.state
            if code == _FENCED and not session.thinking.fenced.add(time.monotonic()):
                # its keeper is away, or came late: the next one finds it
                self._pause(session, session.thinking.fenced.backoff(_FENCED_S))
                continue
            if s.ended is None and s.desired == Desired.RUNNING and s.parked is None:
                why = brain.why or _fall_text(code)
                track = session.track
                paid = s.request is not None and track.request_gen == brain.gen
                await self._fell(session, why, worked=track.worked_gen == brain.gen, paid=paid)

    async def _end_lease(self, session: Session, gen: int, reason: str, code: int | None) -> None:
        await session.keeper().ask(EndLease(gen, reason, code))
        await session.until(lambda: session.state.lease is None or session.state.lease.gen > gen)

    async def _fell(self, session: Session, why: str, *, worked: bool = False, paid: bool = False) -> None:
        """A brain ended that should not have: the next one comes after a growing pause, by itself, unless too many
        replies were lost with them.
        """
        falls = session.thinking.falls
        falls.add(worked=worked, paid=paid)
        if falls.too_dear:
            times = falls.paid
            session.thinking.calm()
            session.unblock("brain")
            await quarantine(session, "brain", f"{why}; the reply it had asked for was lost each time", times)
            return
        self._pause(session, falls.pause_s)
        if falls.count > 1:
            session.block(
                "brain", Trouble("brain_lasting" if falls.lasting else "brain", f"{falls.count} times in a row: {why}")
            )

    def _pause(self, session: Session, seconds: float) -> None:
        """No brain of it before so many seconds have passed."""
        session.thinking.not_before = time.monotonic() + seconds
        self._later(session, seconds)

    async def ask(
        self,
        session: Session,
        kind: str,
        title: str,
        detail: dict[str, object],
        options: tuple[str, ...] = ("retry", "stop"),
    ) -> None:
        """Put one request of this kind in the queue, unless one is open already."""
        if not any(a.kind == kind for a in session.state.approvals.values()):
            await session.append(
                t.ApprovalRequested(
                    approval_id=ids.approval_id(), kind=kind, title=title, options=list(options), detail=detail
                )
            )

    @staticmethod
    async def end(session: Session, grace: float = 0.0) -> None:
        """Make the brain leave: ``grace`` seconds to go by itself, SIGTERM, five seconds, SIGKILL; returns when it is
        gone.
        """
        brain = session.thinking.brain
        if brain is None or brain.watch is None:
            return
        for patience, number in ((grace, signal.SIGTERM), (_TERM_GRACE, signal.SIGKILL), (_TERM_GRACE, signal.SIGKILL)):
            try:
                async with asyncio.timeout(patience):
                    await brain.gone.wait()
            except TimeoutError:
                brain.watch.signal(number)
            else:
                return
        await brain.gone.wait()

    def greet(self, session: Session, gen: int, secret: str, pid: int) -> Brain:
        """The brain that says hello on our socket.

        Raises OpError ``stale_lease`` when it is not the one that holds the lease.
        """
        brain = session.thinking.brain
        if brain is None or brain.gen != gen:
            raise OpError("stale_lease", f"session {session.sid} has another brain, or none")
        # a fork server that died before it answered may have forked another one that knows the secret
        itself = pid == brain.who.pid and alive(brain.who)
        if not itself or (brain.secret and not secrets.compare_digest(brain.secret, secret)):
            raise OpError("stale_lease", f"that is not the brain that holds lease {gen} of {session.sid}")
        return brain


async def quarantine(session: Session, part: str, why: str, times: int) -> None:
    """Nothing of this session starts again until the user decides; the others go on."""
    await session.append(
        t.Quarantined(part=part, reason=why, restarts=times),
        t.ApprovalRequested(
            approval_id=ids.approval_id(),
            kind=Request.RESTART,
            title=f"the {part} failed {times} times in a row: {why}",
            options=[Decision.RETRY, Decision.STOP],
            risk="medium",
            detail={"part": part, "reason": why, "restarts": times},
        ),
    )
