"""What clients may want of a session: that it run, pause or stop."""

from __future__ import annotations

import contextlib

from harness.domain.calls.approval_kind import RESUMED, Request
from harness.domain.states import Desired
from harness.events import types as t
from harness.plan import gates
from harness.supervisor.base.errors import OpError
from harness.supervisor.base.threads import at_home
from harness.supervisor.endpoints.credentials import given_credential
from harness.supervisor.fleet import set_aside
from harness.supervisor.fleet.session import Session
from harness.supervisor.serving.finding import damaged, look_up
from harness.supervisor.serving.parts import Parts, text_of
from harness.supervisor.serving.server import Connection, Fields, Handler
from harness.supervisor.sessions import unanswered
from harness.supervisor.sessions.halt import Halt
from harness.views.replies import Wished

_FREED_S = 5.0
_TAKEN_UP_S = 10.0
_RESUMED = RESUMED | {Request.AUTH, Request.ENDPOINT}
"""What resuming answers."""


def refuse_ended(session: Session, state: str) -> None:
    """Raise OpError ``ended`` when a session that has ended or was stopped is wanted otherwise."""
    s = session.state
    if s.terminal or (s.desired == Desired.STOPPED and state != Desired.STOPPED):
        how = s.ended.outcome if s.ended is not None else "stopped"
        raise OpError(
            "ended", f"{session.name} has ended ({how})", f"take it up again: watchfloor continue {session.sid}"
        )


def _still_waits(session: Session) -> str:
    """What a session that was resumed waits for all the same, in words; a gate that was not opened asks again."""
    s = session.state
    asked = next((a.title for a in s.approvals.values() if a.kind not in _RESUMED), "")
    held = gates.closed(s)
    if not asked and held is not None and s.plan is not None:
        asked = gates.title(held, held.name in s.plan.work.begun)
    return f"{session.name} still waits for your answer: {asked}" if asked else ""


def _skipped(session: Session) -> list[str]:
    """The checks that a session runs before its work, or is about to, when it is resumed though nothing else holds
    it.
    """
    s = session.state
    if s.desired != Desired.RUNNING or s.quarantined is not None or not s.before.running:
        return []
    return list(dict.fromkeys([*s.before.running, *s.before.lacking(s.criteria)]))


class WishOps:
    """``desire``: the wish is recorded whatever state its keeper is in; a stop ends what does not answer."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return {"desire": self.desire}

    async def desire(self, c: Connection, m: Fields) -> Wished:
        """Have a session run, pause or stop; its wish is recorded whatever state its keeper is in."""
        state = text_of(m, "state")
        reason = text_of(m, "reason")
        session = await look_up(self._p, m)
        if session.damaged:
            if state != Desired.STOPPED:
                raise damaged(session)
            return await self._set_aside(session, reason)
        if session.foreign:
            raise OpError("foreign", f"{session.name} is not this fleet's: {session.foreign}")
        if state not in frozenset(Desired):
            raise OpError("bad_request", f"a session can be wanted running, paused or stopped, not {state!r}")
        refuse_ended(session, state)
        if (key := given_credential(m.get("credential"))) is not None:
            self._p.credentials.add(key)
        skipped: list[str] = []
        if state == Desired.RUNNING:
            self._p.gates.retry(session)
            skipped = _skipped(session)
        wish = f"the wish that it be {state}"
        try:
            await unanswered.answered(self._p.fleet, session, wish, self._desire(session, state, reason, c.by))
        except OpError as exc:
            if exc.code not in unanswered.CODES or state != Desired.STOPPED:
                raise
            await self._end_mute(session)
            await unanswered.answered(self._p.fleet, session, wish, self._desire(session, state, reason, c.by))
        if state == Desired.RUNNING:
            await self._withdraw_resumed(session)
            if skipped:
                await session.append(t.ChecksSkipped(commands=skipped, by=c.by))
            return Wished(note=_still_waits(session))
        return Wished()

    async def _desire(self, session: Session, state: str, reason: str, by: t.By) -> None:
        with session.ending() if state == Desired.STOPPED else contextlib.nullcontext():
            if state == Desired.RUNNING or session.link is None:
                self._p.conductor.release(session)
                await self._taken_up(session)
            async with session.wish:  # another wish may have been recorded while this one waited
                refuse_ended(session, state)
                await session.append(t.SessionDesired(state=state, reason=reason, by=by))

    async def _end_mute(self, session: Session) -> None:
        """A stop does not wait for a keeper that does not answer: another one records it."""
        p = self._p
        if not await Halt(p.folders, p.fleet, p.conductor, p.launcher).end_keeper(session):
            raise OpError(
                "busy",
                f"the process that keeps the log of {session.name} cannot be ended",
                "its disk hangs; try again when that answers",
            )
        p.conductor.freed(session)
        await p.fleet.until(lambda: not unanswered.muteness(session), _FREED_S)

    async def _set_aside(self, session: Session, reason: str) -> Wished:
        """Stop a session whose log can take no record: nothing of it lives afterwards, and a file beside its log keeps
        it stopped.
        """
        p = self._p
        if not session.foreign:
            await Halt(p.folders, p.fleet, p.conductor, p.launcher).end_one(session)
        try:
            aside = await at_home(set_aside.write, session.folder, reason)
        except OSError as exc:
            raise OpError(
                "no_space",
                f"nothing of {session.name} runs, but its stop cannot be kept: {exc}",
                "make room, then stop it again",
            ) from exc
        session.put_aside(aside)
        return Wished()

    async def _taken_up(self, session: Session) -> None:
        """Give a session that was held back a moment to get its keeper again."""
        await self._p.fleet.until(lambda: session.link is not None or session.held, _TAKEN_UP_S)

    @staticmethod
    async def _withdraw_resumed(session: Session) -> None:
        """Resuming answers what these ask."""
        stale = [a.approval_id for a in session.state.approvals.values() if a.kind in RESUMED]
        if stale:
            await session.append(*(t.ApprovalWithdrawn(approval_id=a, why="you resumed the session") for a in stale))
