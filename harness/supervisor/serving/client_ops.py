"""What clients may ask of the supervisor. Each operation is one method; refusals are OpError values."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import asdict
from importlib.metadata import version

import msgspec

from harness.events import types as t
from harness.events.framing import LogError
from harness.events.reader import verify
from harness.events.request import Request
from harness.events.views import FleetView
from harness.protocol import frames, identity
from harness.protocol.paths import SessionFolder
from harness.supervisor.calls.ground import private_of
from harness.supervisor.endpoints.credentials import given_credential
from harness.supervisor.errors import OpError
from harness.supervisor.fleet import set_aside
from harness.supervisor.fleet.fleet import Fleet, Money
from harness.supervisor.fleet.session import Session
from harness.supervisor.serving import context_ops, log_reading, memory_ops
from harness.supervisor.serving.alarm_ops import AlarmOps
from harness.supervisor.serving.archive_ops import ArchiveOps
from harness.supervisor.serving.briefing_ops import BriefingOps
from harness.supervisor.serving.checkpoint_ops import CheckpointOps
from harness.supervisor.serving.grant_ops import GrantOps
from harness.supervisor.serving.job_ops import JobOps
from harness.supervisor.serving.memory_ops import MemoryOps
from harness.supervisor.serving.merge_ops import MergeOps
from harness.supervisor.serving.parts import Parts, text_of
from harness.supervisor.serving.plan_ops import PlanOps
from harness.supervisor.serving.policy_ops import PolicyOps
from harness.supervisor.serving.score_ops import ScoreOps
from harness.supervisor.serving.server import Connection, Handler, Reply, Server
from harness.supervisor.serving.timeline_ops import TimelineOps
from harness.supervisor.sessions import continuing, unanswered
from harness.supervisor.sessions.halt import Halt
from harness.supervisor.sessions.removal import Removal
from harness.supervisor.threads import at_home
from harness.supervisor.upkeep import health
from harness.workspace import worktrees
from harness.workspace.diff import diff as workspace_diff
from harness.workspace.errors import WorkspaceError

MAX_MESSAGE = 256 * 1024
_READ_S = 20.0
_FREED_S = 5.0
_DIFF_S = 25.0
"""Seconds that a diff may take; a client waits half a minute for it."""


def refuse_ended(session: Session, state: str) -> None:
    """Raise OpError ``ended`` when a session that has ended or was stopped is wanted otherwise."""
    s = session.state
    if s.terminal or (s.desired == "stopped" and state != "stopped"):
        how = s.ended.outcome if s.ended is not None else "stopped"
        raise OpError(
            "ended", f"{session.name} has ended ({how})", f"take it up again: watchfloor continue {session.sid}"
        )


def _figures(money: Money) -> Reply:
    """The ledger's figures of one session (or several): dollars beside the tokens they were for, requests of unknown
    outcome in full.
    """
    return {
        "spent_nano": money.spent or 0,
        "reserved_nano": money.reserved,
        "requests": money.requests,
        "tokens": money.tokens,
        "usage": money.usage,
        "cache_hit": money.usage.cache_hit,
        "price_source": money.price,
    }


class Ops:
    """The table of operations, and the feed of pushes."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts
        self.server: Server | None = None
        self._state = identity.who(parts.folders.state)

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return {
            "hello": self.hello,
            "status": self.status,
            "sessions": self.sessions,
            "session": self.session,
            "launch": self.launch,
            "desire": self.desire,
            "continue": self.go_on,
            "remove": self.remove,
            "say": self.say,
            "compact": self.compact,
            "approvals": self.open_approvals,
            "approval": self.approval,
            "decide": self.decide,
            "defer": self.defer,
            "changes": self.changes,
            "undo": self.undo,
            "undo_points": self.undo_points,
            "costs": self.costs,
            "diff": self.diff,
            "read": self.read,
            "blob": self.blob,
            "verify": self.verify,
            "invariants": self.invariants,
            "subscribe": self.subscribe,
            "shutdown": self.shutdown,
            **ArchiveOps(self._p).table(),
            **CheckpointOps(self._p, self._find).table(),
            **GrantOps(self._p).table(),
            **JobOps(self._p).table(),
            **MemoryOps(self._p).table(),
            **MergeOps(self._p, self._find).table(),
            **PlanOps(self._find).table(),
            **PolicyOps(self._p).table(),
            **TimelineOps(self._find).table(),
            **AlarmOps(self._find).table(),
            **ScoreOps(self._p, self._find).table(),
            **BriefingOps(self._p, self._find).table(),
        }

    # -- the feed ----------------------------------------------------------------------------------

    def fleet_view(self) -> FleetView:
        """Totals and health."""
        p = self._p
        money = p.purse.totals()
        full = f"{p.fleet.full}; free some space, then every session goes on by itself" if p.fleet.full else ""
        own = [
            *p.purse.notes,
            full,
            p.purse.problem,
            p.book.problem,
            p.granting.book.problem,
            p.index.problem,
            p.disk.problem,
        ]
        warnings = [*p.settings.problems.values(), *filter(None, own), *p.fence.warnings()]
        return p.fleet.totals(
            FleetView(
                spent_today_nano=money.today,
                spent_total_nano=money.total,
                reserved_nano=money.reserved,
                day_cap_nano=money.day_cap,
                fleet_cap_nano=money.fleet_cap,
                epoch=p.epoch,
                fence=p.fence.summary,
                warnings=warnings,
                endpoints=p.gates.views(),
                troubles=health.fleet(
                    {
                        **p.settings.problems,
                        "index": p.index.problem,
                        "fence": "; ".join(p.fence.warnings()),
                        "disk": p.fleet.full or p.disk.problem,
                        "ledger": p.purse.problem,
                    }
                ),
            )
        )

    def rows(self, changed: set[str] | None) -> Reply:
        """The ``rows`` push."""
        sessions = self._p.fleet.sessions
        wanted = list(sessions) if changed is None else sorted(changed & sessions.keys())
        gone = [] if changed is None else sorted(changed - sessions.keys())
        return {
            "push": "rows",
            "rows": [self._p.fleet.row(sessions[sid]) for sid in wanted],
            "gone": gone,
            "fleet": self.fleet_view(),
        }

    async def approvals(self) -> Reply:
        """The ``approvals`` push."""
        return {"push": "approvals", "approvals": await self._p.approvals.all()}

    async def subscribe(self, c: Connection, m: Reply) -> Reply:
        assert self.server is not None
        return await self.server.subscribe(c)

    # -- looking -----------------------------------------------------------------------------------

    async def hello(self, c: Connection, m: Reply) -> Reply:
        return {
            "proto": frames.PROTOCOL,
            "epoch": self._p.epoch,
            "version": version("watchfloor"),
            "pid": os.getpid(),
            "state": self._state,
        }

    async def status(self, c: Connection, m: Reply) -> Reply:
        p = self._p
        view = self.fleet_view()
        troubled = [
            f"session {s.name}: {why}" for s in p.fleet for why in (s.trouble, *map(str, s.hindrances.values())) if why
        ]
        return {
            "fleet": view,
            "fence": await p.fence.result(),
            "policy": {
                "source": p.settings.policy.source,
                "hash": p.settings.policy.hash,
                "rules": len(p.settings.policy.rules),
            },
            "config": {"file": str(p.settings.config.file), "model": p.settings.config.model.default},
            "problems": [*view.warnings, *troubled],
            "troubles": [*view.troubles, *health.sessions(p.fleet)],
        }

    async def sessions(self, c: Connection, m: Reply) -> Reply:
        return {"rows": self._p.fleet.rows(), "fleet": self.fleet_view()}

    async def _find(self, m: Reply) -> Session:
        session = self._p.fleet.find(text_of(m, "sid"))
        if not session.loaded and not session.damaged:
            try:
                await session.read()
            except (LogError, msgspec.DecodeError):
                session.touch()
        if session.damaged:
            raise OpError(
                "damaged",
                session.damaged,
                "it can be looked at and stopped; to remove it with what is in its worktree: watchfloor rm --force"
                f" {session.sid}",
            )
        return session

    async def session(self, c: Connection, m: Reply) -> Reply:
        p = self._p
        session = p.fleet.find(text_of(m, "sid"))
        try:
            await self._find(m)
        except OpError as exc:
            if exc.code != "damaged":
                raise
        decidable = [] if session.foreign or session.damaged else list(session.state.approvals)
        views = [await p.approvals.view(session, a) for a in decidable]
        return {
            "row": p.fleet.row(session),
            "state": msgspec.to_builtins(session.state),
            "approvals": views,
            "folder": str(session.folder.root),
        }

    async def diff(self, c: Connection, m: Reply) -> Reply:
        session = await self._find(m)
        try:
            found = await session.look(
                "its diff", _DIFF_S, lambda: workspace_diff(worktrees.open_worktree(private_of(session)))
            )
        except (WorkspaceError, OSError) as exc:
            raise OpError("no_worktree", f"there is no diff: {exc}") from exc
        return {"files": [asdict(f) for f in found.files], "patch": found.patch, "truncated": found.truncated}

    async def read(self, c: Connection, m: Reply) -> Reply:
        """Raw records of a log."""
        from_seq = log_reading.bounded(m, "from_seq", 0, 0)
        most = log_reading.bounded(m, "most_bytes", log_reading.MOST_BYTES, 1, log_reading.MOST_BYTES)
        return await self._piece(m, "its log", lambda folder: log_reading.lines(folder, from_seq, most))

    async def blob(self, c: Connection, m: Reply) -> Reply:
        """A piece of a payload that a record names."""
        sha = text_of(m, "sha", 64)
        offset = log_reading.bounded(m, "offset", 0, 0)
        most = log_reading.bounded(m, "most", log_reading.MOST_BYTES, 1, log_reading.MOST_BYTES)
        return await self._piece(m, "a payload", lambda folder: log_reading.blob(folder, sha, offset, most))

    async def _piece(self, m: Reply, what: str, read: Callable[[SessionFolder], Reply]) -> Reply:
        session = self._p.fleet.find(text_of(m, "sid"))
        try:
            return await session.look(what, _READ_S, lambda: read(session.folder))
        except (WorkspaceError, OSError) as exc:
            raise OpError("unreadable", f"it cannot be read now: {exc}") from exc

    async def costs(self, c: Connection, m: Reply) -> Reply:
        p = self._p
        sessions: list[Reply] = []
        for session in p.fleet:
            money = p.purse.of(session.sid)
            row = p.fleet.row(session)
            sessions.append(
                {
                    "sid": session.sid,
                    "name": session.name,
                    "model": row.model,
                    "state": row.state,
                    "cap_nano": row.cap_nano,
                    **_figures(
                        money
                        if money.spent is not None
                        else Money(row.spent_nano, 0, "", row.tokens, row.requests, session.state.usage)
                    ),
                }
            )
        removed = p.purse.others({s.sid for s in p.fleet})
        days = [
            {
                "day": d.day,
                "nano": d.spent_nano,
                "reserved_nano": d.reserved_nano,
                "tokens": d.tokens,
                "requests": d.requests,
            }
            for d in p.purse.days()
        ]
        return {"fleet": self.fleet_view(), "sessions": sessions, "removed": _figures(removed), "days": days}

    async def verify(self, c: Connection, m: Reply) -> Reply:
        wanted = [self._p.fleet.find(text_of(m, "sid"))] if m.get("sid") else list(self._p.fleet)

        def look(session: Session) -> Reply:
            report = verify(session.folder.log)
            problem = (
                f"{report.problem.file} at byte {report.problem.offset}, record {report.problem.seq}:"
                f" {report.problem.why}"
                if report.problem
                else ""
            )
            return {
                "sid": session.sid,
                "name": session.name,
                "ok": report.ok,
                "records": report.records,
                "problem": problem,
            }

        found = [await at_home(look, s) for s in wanted if s.folder.log.is_dir()]
        ledger: Reply = {}
        if not m.get("sid") and self._p.folders.ledger.is_dir():
            report = await at_home(verify, self._p.folders.ledger)
            ledger = {
                "ok": report.ok,
                "records": report.records,
                "problem": report.problem.why if report.problem else "",
            }
        return {"sessions": found, "ledger": ledger}

    async def invariants(self, c: Connection, m: Reply) -> Reply:
        from harness.supervisor.upkeep import invariants

        rows = {
            s.sid: self._p.fleet.row(s)
            for s in self._p.fleet
            if s.loaded or (s.indexed is not None and s.indexed.current)
        }
        found = await at_home(lambda: invariants.check(self._p.folders, live=True, index=rows))
        return {"violations": [{"id": v.id, "sid": v.sid, "text": v.text} for v in found]}

    # -- sessions ----------------------------------------------------------------------------------

    async def launch(self, c: Connection, m: Reply) -> Reply:
        session = await self._p.launcher.launch(m)
        self._p.conductor.start(session)
        return {"sid": session.sid, "name": session.name, "warnings": self._p.gates.warnings(session)}

    async def desire(self, c: Connection, m: Reply) -> Reply:
        state = text_of(m, "state")
        reason = text_of(m, "reason")
        try:
            session = await self._find(m)
        except OpError as exc:
            if exc.code != "damaged" or state != "stopped":
                raise
            return await self._set_aside(self._p.fleet.find(text_of(m, "sid")), reason)
        if session.foreign:
            raise OpError("foreign", f"{session.name} is not this fleet's: {session.foreign}")
        if state not in ("running", "paused", "stopped"):
            raise OpError("bad_request", f"a session can be wanted running, paused or stopped, not {state!r}")
        refuse_ended(session, state)
        if (key := given_credential(m.get("credential"))) is not None:
            self._p.credentials.add(key)
        if state == "running":
            self._p.gates.retry(session)
        wish = f"the wish that it be {state}"
        try:
            await unanswered.answered(self._p.fleet, session, wish, self._desire(session, state, reason, c.by))
        except OpError as exc:
            if exc.code not in unanswered.CODES or state != "stopped":
                raise
            await self._end_mute(session)
            await unanswered.answered(self._p.fleet, session, wish, self._desire(session, state, reason, c.by))
        if state == "running":
            await self._withdraw_restart(session)
        return {}

    async def _desire(self, session: Session, state: str, reason: str, by: t.By) -> None:
        with session.ending() if state == "stopped" else contextlib.nullcontext():
            if state == "running" or session.link is None:
                self._p.conductor.release(session)
                await self._taken_up(self._p.fleet, session)
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

    async def _set_aside(self, session: Session, reason: str) -> Reply:
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
        return {}

    @staticmethod
    async def _taken_up(fleet: Fleet, session: Session) -> None:
        """Give a session that was held back a moment to get its keeper again."""
        await fleet.until(lambda: session.link is not None or session.held, 10.0)

    @staticmethod
    async def _withdraw_restart(session: Session) -> None:
        """Resuming answers what a restart request asks."""
        stale = [a.approval_id for a in session.state.approvals.values() if a.kind == Request.RESTART]
        if stale:
            await session.append(*(t.ApprovalWithdrawn(approval_id=a, why="you resumed the session") for a in stale))

    async def say(self, c: Connection, m: Reply) -> Reply:
        session = await self._find(m)
        text = text_of(m, "text", MAX_MESSAGE)
        if not text.strip():
            raise OpError("bad_request", "the message is empty")
        if session.state.terminal or session.state.desired == "stopped":
            raise OpError(
                "ended",
                f"{session.name} has ended; nobody would read it",
                f"take it up again with your words: watchfloor continue {session.sid} TEXT",
            )
        # Words answer what the agent asked: it must not go on waiting for them.
        asked = [a for a in session.state.approvals.values() if a.kind in (Request.QUESTION, Request.REFUSAL)]
        if calls := [a.approval_id for a in asked if a.call_id]:
            decision = {"approval_id": calls[0], "decision": "answer", "message": text}
            work = self._p.approvals.decide(decision, c.by)
            await unanswered.answered(self._p.fleet, session, "your message", work)
            return {}
        asking = [a.approval_id for a in asked]
        answered = [t.ApprovalWithdrawn(approval_id=a, why="you said something") for a in asking]
        said = session.append(*answered, t.UserMessage(text=text, origin="human", by=c.by))
        await unanswered.answered(self._p.fleet, session, "your message", said)
        return {}

    async def compact(self, c: Connection, m: Reply) -> Reply:
        await context_ops.want_compaction(await self._find(m), c.by)
        return {}

    async def go_on(self, c: Connection, m: Reply) -> Reply:
        """``continue``: an ended session is taken up again."""
        session = await self._find(m)
        wish = continuing.parse(m)
        if (key := given_credential(m.get("credential"))) is not None:
            self._p.credentials.add(key)
        await self._p.continuing.run(session, wish, self._p.purse.of(session.sid).spent, c.by)
        return {"sid": session.sid, "name": session.name}

    async def remove(self, c: Connection, m: Reply) -> Reply:
        p = self._p
        session = self._p.fleet.find(text_of(m, "sid"))
        force = m.get("force") is True
        try:
            await self._find(m)
        except OpError as exc:
            if exc.code != "damaged" or not force:
                raise
        removal = Removal(p.folders, session, p.fleet.row(session))
        async with session.lock:  # what is undone or continued meanwhile comes before or after
            with contextlib.suppress(OpError):  # a full disk must not keep anybody from making room
                await p.purse.remember()
            removed = await removal.run(m.get("force_keep") is True, force)
        await memory_ops.drop(p, session)
        p.index.drop(session.sid)
        p.fleet.drop(session)
        await removal.forget()
        return {
            "kept": removed.kept,
            "lost": removed.lost,
            "checkpoints": removed.checkpoints,
            "archived": removed.archived,
        }

    # -- the queue ---------------------------------------------------------------------------------

    async def open_approvals(self, c: Connection, m: Reply) -> Reply:
        return {"approvals": await self._p.approvals.all()}

    async def approval(self, c: Connection, m: Reply) -> Reply:
        approval_id = text_of(m, "approval_id")
        return {"approval": await self._p.approvals.view(self._p.fleet.approval(approval_id, "not_found"), approval_id)}

    async def changes(self, c: Connection, m: Reply) -> Reply:
        approval_id = text_of(m, "approval_id")
        offset = m.get("offset", 0)
        if isinstance(offset, bool) or not isinstance(offset, int):
            raise OpError("bad_request", "offset must be a whole number of characters")
        return await self._p.approvals.changes(self._p.fleet.approval(approval_id, "not_found"), approval_id, offset)

    async def decide(self, c: Connection, m: Reply) -> Reply:
        session = self._p.fleet.approval(text_of(m, "approval_id"))
        return {
            "decision_id": await unanswered.answered(
                self._p.fleet, session, "the decision", self._p.approvals.decide(m, c.by)
            )
        }

    async def defer(self, c: Connection, m: Reply) -> Reply:
        await self._p.approvals.defer(text_of(m, "approval_id"), text_of(m, "until"))
        return {}

    # -- undo --------------------------------------------------------------------------------------

    async def undo(self, c: Connection, m: Reply) -> Reply:
        session = await self._find(m)
        try:
            return await unanswered.answered(
                self._p.fleet, session, "the undo", self._p.undo.undo(session, text_of(m, "to"), c.by)
            )
        finally:
            self._settle_again(session)

    async def undo_points(self, c: Connection, m: Reply) -> Reply:
        session = await self._find(m)
        try:
            return await unanswered.answered(self._p.fleet, session, "the question", self._p.undo.points(session))
        finally:
            self._settle_again(session)

    def _settle_again(self, session: Session) -> None:
        """A session that has ended got its keeper only for this: its work is published anew and the keeper leaves."""
        if session.state.terminal and session.link is not None:
            self._p.conductor.start(session)

    # -- the end -----------------------------------------------------------------------------------

    async def shutdown(self, c: Connection, m: Reply) -> Reply:
        what = text_of(m, "sessions") or "leave"
        if what not in ("leave", "stop"):
            raise OpError("bad_request", f"sessions can be left or stopped, not {what!r}")
        unrecorded = (
            await Halt(self._p.folders, self._p.fleet, self._p.conductor, self._p.launcher).run(c.by)
            if what == "stop"
            else []
        )
        await self._p.stop()
        return {"unrecorded": unrecorded}


__all__ = ["Ops"]
