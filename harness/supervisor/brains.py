"""Brains: leased, forked when there is something to think about, watched to their end, restarted with limits."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import signal
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from harness.events import asking
from harness.events import types as t
from harness.events.fold import SessionState
from harness.protocol.config import Config, ConfigError, Credential, credential
from harness.protocol.paths import Folders
from harness.supervisor import ids
from harness.supervisor.credentials import Credentials
from harness.supervisor.errors import LinkLost, OpError
from harness.supervisor.fleet import Brain, Session
from harness.supervisor.nursery import Nursery
from harness.supervisor.process import Identity, Watch, alive

BLOCKING = frozenset({"cap", "auth", "restart", "question"})
_TERM_GRACE = 5.0
_FENCED = 75
_CODE_TRIES = 40


def limited_for(s: SessionState, now: float) -> float:
    """Seconds until a session that was told to wait may try again; 0 when it may now."""
    if s.parked is None or s.parked.why != "limited" or not s.parked.until:
        return 0.0
    try:
        until = datetime.fromisoformat(s.parked.until)
    except ValueError:
        return 0.0
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, until.timestamp() - now)


def needs_brain(s: SessionState, now: float) -> bool:
    """True when there is something to think about and nobody thinks: the one rule of waking. ``now`` is Unix time."""
    if s.intent is None or s.created is None or s.ended is not None or s.quarantined is not None:
        return False
    if s.desired != "running" or s.lease is not None:
        return False
    if s.road.calls or any(a.kind in BLOCKING for a in s.approvals.values()):
        return False
    return limited_for(s, now) == 0.0


class Brains:
    """Starts, adopts, watches and ends brains."""

    def __init__(self, folders: Folders, epoch: int, credentials: Credentials, config: Callable[[], Config], later: Callable[[Session, float], None]) -> None:
        self._folders, self._epoch, self._credentials = folders, epoch, credentials
        self._config, self._later = config, later
        self._codes: dict[int, int] = {}
        self.nursery = Nursery("harness.brain.nursery", network=True, isolated=False, on_push=self._pushed)

    def _pushed(self, message: dict[str, Any]) -> None:
        if message.get("push") == "exited":
            self._codes[int(message["pid"])] = int(message["code"])

    async def step(self, session: Session) -> None:
        """Bring the session's brain in line with its state: adopt, bury, or wake."""
        s = session.state
        if session.brain is None and s.lease is not None:
            await self._adopt(session, s.lease)
        if session.brain is not None or not needs_brain(s, time.time()):
            if (wait := limited_for(s, time.time())) > 0 and session.brain is None:
                self._later(session, wait + 0.05)
            return
        if (wait := session.brain_not_before - time.monotonic()) > 0:
            self._later(session, wait)
            return
        await self._wake(session)

    async def _adopt(self, session: Session, lease: t.LeaseGranted) -> None:
        who = Identity(lease.pid, lease.start, lease.boot)
        brain = Brain(lease.gen, who, "", since_seq=session.state.seq)
        try:
            brain.watch = Watch(who, lambda: self._ended(session, brain))
        except (ProcessLookupError, OSError):
            await self._end_lease(session, lease.gen, "its process is gone", None)
            return
        brain.leased.set()
        session.brain = brain
        session.touch()

    def _credential(self, session: Session, intent: t.SessionIntent) -> Credential | None:
        configured: Credential | None = None
        with contextlib.suppress(ConfigError):  # an unreadable key file is a missing key: the approval says which endpoint needs one
            configured = credential(self._config())
        return self._credentials.find(intent.base_url, intent.credential, configured)

    async def _wake(self, session: Session) -> None:
        intent = session.state.intent
        assert intent is not None
        key = self._credential(session, intent)
        if key is None:
            await self.ask(session, "auth", f"no key for {intent.base_url}", {"base_url": intent.base_url})
            return
        gen, secret = session.state.lease_gen + 1, secrets.token_hex(16)
        config = self._config()
        order: dict[str, object] = {
            "sid": session.sid,
            "folder": str(session.folder.root),
            "keeper_socket": str(session.folder.keeper_socket),
            "supervisor_socket": str(self._folders.supervisor_socket),
            "gen": gen,
            "secret": secret,
            "credential": {"base_url": key.base_url, "key": key.key},
            "model": intent.model,
            "max_tokens": config.model.max_tokens,
        }
        try:
            who = await self.nursery.spawn({"brain": order}, wait=60.0)
        except (OpError, LinkLost, OSError) as exc:
            await self._fell(session, f"it could not be started: {exc}")
            return
        brain = Brain(gen, who, secret, since_seq=session.state.seq)
        try:
            brain.watch = Watch(who, lambda: self._ended(session, brain))
        except ProcessLookupError:
            await self._fell(session, "it ended at once")
            return
        session.brain = brain
        try:
            await session.keeper().call("lease", gen=gen, epoch=self._epoch, secret=secret, pid=who.pid, start=who.start, boot=who.boot)
            await session.until(lambda: session.state.lease_gen >= gen)
        except (OpError, LinkLost):
            brain.watch.signal(signal.SIGKILL)
            raise
        brain.leased.set()
        session.touch()

    def _ended(self, session: Session, brain: Brain) -> None:
        """The process is gone; the session's worker ends the lease at its next step."""
        brain.gone.set()
        if session.brain is brain:
            session.brain = None
            brain.exit_code = self._codes.pop(brain.who.pid, None)
            session.buried.append(brain)
        session.touch()

    async def bury(self, session: Session) -> None:
        """End the leases of brains that are gone and count the ends that were no ends of work."""
        while session.buried:
            brain = session.buried[0]
            for _ in range(_CODE_TRIES if brain.secret else 0):  # the nursery's word about the exit code may be on its way
                if brain.exit_code is not None:
                    break
                await asyncio.sleep(0.005)
                brain.exit_code = self._codes.pop(brain.who.pid, None)
            code = brain.exit_code
            lease = session.state.lease
            if lease is not None and lease.gen == brain.gen:
                how = "exited" if code in (0, None) else f"killed by signal {-code}" if code < 0 else f"exit code {code}"
                await self._end_lease(session, brain.gen, how, code)
            session.buried.pop(0)
            s = session.state
            if code == _FENCED and not session.brain_fenced.add(time.monotonic()):
                continue  # it lost its keeper, or came before its lease was on record: the next one finds both
            if s.ended is None and s.desired == "running" and s.parked is None:
                await self._fell(session, f"it left without a word (exit code {code})" if code is not None else "it died")

    async def _end_lease(self, session: Session, gen: int, reason: str, code: int | None) -> None:
        await session.keeper().call("lease_end", gen=gen, reason=reason, exit_code=code)
        await session.until(lambda: session.state.lease is None or session.state.lease.gen > gen)

    async def _fell(self, session: Session, why: str) -> None:
        too_many = session.brain_falls.add(time.monotonic())
        session.brain_not_before = time.monotonic() + session.brain_falls.backoff()
        if not too_many:
            self._later(session, session.brain_falls.backoff())
            return
        times = len(session.brain_falls.times)
        session.brain_falls.times.clear()
        await quarantine(session, "brain", why, times)

    async def ask(
        self, session: Session, kind: str, title: str, detail: dict[str, Any], options: tuple[str, ...] = ("retry", "stop"), risk: str = "medium"
    ) -> None:
        """Put one request of this kind in the queue, unless one is open already."""
        if not any(a.kind == kind for a in session.state.approvals.values()):
            await session.append(t.ApprovalRequested(approval_id=ids.approval_id(), kind=kind, title=title, options=list(options), detail=detail))

    async def parked(self, session: Session) -> None:
        """A brain that left because of trouble: put what a human must decide in the queue, once for each time."""
        s, track = session.state, session.track
        if s.parked is None or s.lease is not None or s.desired != "running":
            return
        why, detail = s.parked.why, s.parked.detail
        if why == "auth" and track.asked_seq.get("auth", -1) < track.parked_seq:
            if s.intent is not None:
                self._credentials.mark_bad(s.intent.credential)
            told = s.last_failure.message if s.last_failure is not None and s.last_failure.kind == "auth" else detail
            url = s.intent.base_url if s.intent is not None else ""
            await self.ask(session, "auth", f"{url} refuses the key: {told}", {"base_url": url, "message": told})
        elif why == "error" and track.asked_seq.get("restart", -1) < track.parked_seq:
            await self.ask(session, "restart", detail or "the model cannot be reached", {"part": "model", "failures": s.failures_in_row})
        elif why == "question" and track.asked_seq.get("question", -1) < track.parked_seq:
            checks = {"checks": f"{s.checks_passed} of {len(s.checks)} pass"} if s.checks else {}
            await self.ask(session, "question", asking.asked(detail) or "it asks you", {"asks": detail, **checks}, ("answer", "done", "stop"))
        elif why == "breaker" and track.asked_seq.get("question", -1) < track.parked_seq:
            await self.ask(session, "question", detail or "a breaker opened: the agent goes in circles", {"breaker": detail}, ("answer", "retry", "stop"))

    @staticmethod
    async def end(session: Session, grace: float = 0.0) -> None:
        """Make the brain leave: ``grace`` seconds to go by itself, SIGTERM, five seconds, SIGKILL; returns when it is gone."""
        brain = session.brain
        if brain is None or brain.watch is None:
            return
        for patience, number in ((grace, signal.SIGTERM), (_TERM_GRACE, signal.SIGKILL), (_TERM_GRACE, signal.SIGKILL)):
            try:
                await asyncio.wait_for(brain.gone.wait(), patience)
            except TimeoutError:
                brain.watch.signal(number)
            else:
                return
        await brain.gone.wait()

    def greet(self, session: Session, gen: int, secret: str, pid: int) -> Brain:
        """The brain that says hello on our socket. Raises OpError ``stale_lease`` when it is not the one that holds the lease."""
        brain = session.brain
        if brain is None or brain.gen != gen:
            raise OpError("stale_lease", f"session {session.sid} has another brain, or none")
        known = secrets.compare_digest(brain.secret, secret) if brain.secret else pid == brain.who.pid and alive(brain.who)
        if not known:
            raise OpError("stale_lease", f"that is not the brain that holds lease {gen} of {session.sid}")
        return brain


async def quarantine(session: Session, part: str, why: str, times: int) -> None:
    """Nothing of this session starts again until the user decides; the others go on."""
    await session.append(
        t.Quarantined(part=part, reason=why, restarts=times),
        t.ApprovalRequested(
            approval_id=ids.approval_id(),
            kind="restart",
            title=f"the {part} failed {times} times within a minute: {why}",
            options=["retry", "stop"],
            risk="medium",
            detail={"part": part, "reason": why, "restarts": times},
        ),
    )
