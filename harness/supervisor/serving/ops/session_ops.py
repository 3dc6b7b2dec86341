"""What clients may do with a session: launch it, speak to it, take it up again, remove it."""

from __future__ import annotations

import contextlib

from harness.domain.calls.approval_kind import RESUMED, SPOKEN, Request
from harness.domain.cap import Cap
from harness.domain.states import Desired
from harness.domain.text.formatting import usd
from harness.events import types as t
from harness.projections.state.row_state import without_criterion
from harness.projections.state.session_state import SessionState
from harness.supervisor.base.errors import OpError
from harness.supervisor.endpoints.credentials import given_credential
from harness.supervisor.serving.finding import Find, damaged, look_up
from harness.supervisor.serving.ops import memory_ops
from harness.supervisor.serving.parts import Parts, text_of
from harness.supervisor.serving.server import Connection, Fields, Handler
from harness.supervisor.sessions import continuing, unanswered
from harness.supervisor.sessions.removal import Removal
from harness.supervisor.sessions.taking.at_rest import put_away
from harness.views.replies import DONE, Done, Launched, PhrasesLook, Removed, Said, Starts, WentOn

MAX_MESSAGE = 256 * 1024


class SessionOps:
    """``launch``, ``starts``, ``say``, ``compact``, ``continue``, ``remove``."""

    def __init__(self, parts: Parts, find: Find) -> None:
        self._p = parts
        self._find = find

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return {
            "launch": self.launch,
            "starts": self.starts,
            "phrases": self.phrases,
            "say": self.say,
            "compact": self.compact,
            "continue": self.go_on,
            "remove": self.remove,
        }

    async def launch(self, c: Connection, m: Fields) -> Launched:
        """Begin a session."""
        await self._held_strictly()
        session, checked = await self._p.launcher.launch(m)
        self._p.conductor.start(session)
        await self._p.budget_service.know_price(session)
        warnings = [*self._p.gates.requests.warnings(session), *_unmarked(session.state)]
        warnings += [*(one.told for one in checked.masked), *checked.notes]
        return Launched(sid=session.sid, name=session.name, warnings=warnings, masked=list(checked.masked))

    async def _held_strictly(self) -> None:
        await self._p.sandbox.refuse(strict=self._p.settings.config.limits.strict)

    async def starts(self, c: Connection, m: Fields) -> Starts:
        """Branches and commits that a session of ``repo`` may begin from."""
        return Starts(starts=await self._p.launcher.starts(text_of(m, "repo")))

    async def phrases(self, c: Connection, m: Fields) -> PhrasesLook:
        """Phrases of a plan that a person may bind to commands before a launch."""
        return await self._p.launcher.phrases(m)

    async def say(self, c: Connection, m: Fields) -> Said:
        """Send a message to a session's agent."""
        session = await self._find(m)
        text = text_of(m, "text", MAX_MESSAGE)
        if not text.strip():
            raise OpError("bad_request", "the message is empty")
        if session.state.terminal or session.state.desired == Desired.STOPPED:
            raise OpError(
                "ended",
                f"{session.name} has ended; nobody would read it",
                f"take it up again with your words: watchfloor continue {session.sid} TEXT",
            )
        # Words answer what the agent asked: it must not go on waiting for them.
        asked = [a for a in session.state.approvals.values() if a.kind in SPOKEN | RESUMED]
        if calls := [a.approval_id for a in asked if a.call_id]:
            decision = {"approval_id": calls[0], "decision": "answer", "message": text}
            work = self._p.approvals.decide(decision, c.by)
            await unanswered.answered(self._p.fleet, session, "your message", work)
            return Said(note="")
        asking = [a.approval_id for a in asked]
        answered = [t.ApprovalWithdrawn(approval_id=a, why="you said something") for a in asking]
        at_cap = next((a.approval_id for a in session.state.approvals.values() if a.kind == Request.CAP), "")
        more: list[t.FinishUp] = []
        note = ""
        if at_cap:
            note = (
                "it waits at a cap and reads this when you have answered:"
                f" watchfloor approve {at_cap} --finish (one last reply, to your words too) or --raise-to X"
            )
        elif session.state.finish_up is not None:
            more = [await self._p.budget_service.finish(session, Cap.SESSION_USD, text)]
            note = f"it is finishing up: one last reply to this too, at most {usd(more[0].allowance_nano)} past its cap"
        words = t.UserMessage(text=text, origin="human", by=c.by)
        goes_on: list[t.Body] = []
        if session.state.quarantined is not None:  # words to one that was set aside have it go on
            goes_on = [t.SessionDesired(state=session.state.desired, reason="you said something", by=c.by)]
        said = session.append(*answered, words, *more, *goes_on)
        last = await unanswered.answered(self._p.fleet, session, "your message", said)
        if session.state.unread(last):
            raise OpError(
                "ended",
                f"{session.name} ended just before your words came; they are on record, and nobody has read them",
                f"take it up again with them: watchfloor continue {session.sid} TEXT",
            )
        return Said(note=note)

    async def compact(self, c: Connection, m: Fields) -> Done:
        """Compact a session's context before its next turn."""
        session = await self._find(m)
        s = session.state
        if s.terminal or s.desired == Desired.STOPPED:
            raise OpError("ended", f"{session.name} has ended; its context is sent to nobody")
        refused = [a.approval_id for a in s.approvals.values() if a.kind == Request.HISTORY]
        if not s.context.wanted or refused:
            answered = (t.ApprovalWithdrawn(approval_id=a, why="you wanted it shorter") for a in refused)
            await session.append(*answered, t.ContextWanted(by=c.by, fresh=bool(refused)))
        return DONE

    async def go_on(self, c: Connection, m: Fields) -> WentOn:
        """Take an ended session up again."""
        await self._held_strictly()
        session = await self._find(m)
        wish = continuing.parse(m)
        if (key := given_credential(m.get("credential"))) is not None:
            self._p.credentials.add(key)
        await self._p.continuing.run(session, wish, self._p.budget_service.of(session.sid).spent, c.by)
        return WentOn(sid=session.sid, name=session.name)

    async def remove(self, c: Connection, m: Fields) -> Removed:
        """Archive an ended session and delete its worktree."""
        p = self._p
        session = await look_up(p, m)
        force = m.get("force") is True
        if session.damaged and not force:
            raise damaged(session)
        if session.state.terminal and not session.held and not session.foreign:
            await put_away(p.fleet, session)
        removal = Removal(p.folders, session, p.fleet.row(session))
        async with session.lock:  # what is undone or continued meanwhile comes before or after
            if session.sid not in p.fleet.sessions:
                await look_up(p, {"sid": session.sid})  # says that somebody else has removed it
            with contextlib.suppress(OpError):  # a full disk must not keep anybody from making room
                await p.budget_service.remember()
            removed = await removal.run(m.get("force_keep") is True, force)
            await memory_ops.drop(p, session)
            p.index.drop(session.sid)
            p.fleet.drop(session)
        await removal.forget()
        return Removed(kept=removed.kept, lost=removed.lost, checkpoints=removed.checkpoints, archived=removed.archived)


def _unmarked(s: SessionState) -> list[str]:
    """What a person reads of a session whose plan nothing decides."""
    if s.intent is None or not s.intent.plan or not without_criterion(s):
        return []
    path = s.intent.plan
    return [
        f"no criterion of {path} is decided by a command: it ends on the agent's word, and stays marked;"
        f" watchfloor spec check {path} says how to word them, and a judge (--judge) decides without"
    ]
