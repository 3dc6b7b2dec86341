"""Sending a session's work to a remote because a person says so: a push on the road of every call, in that person's
name. No agent is asked or told.
"""

from __future__ import annotations

import contextlib
from dataclasses import dataclass

from harness.domain import outcomes
from harness.domain.actions.access import Access
from harness.domain.actions.action import PushAction, action_hash
from harness.domain.calls.call_id import name_call
from harness.domain.calls.call_states import CallEnd, CallStage
from harness.domain.decision import Ruling
from harness.domain.text import fields
from harness.domain.text.formatting import counted
from harness.events import types as t
from harness.events.work import pull_events as p
from harness.policy.build import build_action
from harness.policy.decide import decide
from harness.projections.state.merging import named
from harness.projections.state.publishing import CheckLine, PlanEntryLine, PullView
from harness.supervisor.base import ids
from harness.supervisor.base.errors import OpError
from harness.supervisor.base.settings import Settings
from harness.supervisor.calls import carrying_out
from harness.supervisor.calls.session_folder import private_of
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.fleet.session import Session
from harness.supervisor.sessions.keepers import Keepers
from harness.supervisor.sessions.taking.apart import apart
from harness.supervisor.sessions.taking.at_rest import at_rest
from harness.supervisor.sessions.taking.reviewed import Reviewed
from harness.tools import registry
from harness.workspace.facts.gather import gather
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.merge import merge
from harness.workspace.tree.scan import tip
from harness.workspace.tree.worktrees import open_worktree

_LOOK_S = 120.0
"""Seconds that looking at the worktree, and asking the remote, may take."""
_MORE_S = 60.0
"""Seconds beyond its own limit after which the end of a push is no longer waited for."""
_MOST_COMMITS = 50
_BY_YOU = "you-push"
_WHY = 600


@dataclass(frozen=True, slots=True)
class PublishRequest:
    """``branch`` at ``remote``; empty: the session's own name for it. ``commit``: first commit what is in no commit;
    ``seen``: what they looked at (`Diff.seen`), empty when they looked at nothing. ``address``: where the remote led
    when they were told; empty when they were not.
    """

    remote: str = "origin"
    branch: str = ""
    commit: bool = False
    force: bool = False
    seen: str = ""
    address: str = ""


@dataclass(frozen=True, slots=True)
class _Made:
    action: PushAction
    head: str
    """The commit that is pushed; empty while it is not made."""
    subjects: list[str]
    count: int
    loose: tuple[str, ...]
    """Files that are committed first."""
    seen: str
    """What the wish has of it, after the commit that it asked for."""


class Pulling:
    """Answers the ops, and settles what a supervisor before us left."""

    def __init__(self, fleet: Fleet, keepers: Keepers, settings: Settings, reviewed: Reviewed) -> None:
        self._reviewed = reviewed
        self._fleet = fleet
        self._keepers = keepers
        self._settings = settings

    async def look(self, session: Session, wish: PublishRequest, *, ready: bool = False) -> PullView:
        """What would be pushed where; nothing is recorded or sent. ``ready``: what the wish wants in a commit
        is committed first, so that the view is of exactly what `push` sends. Raises OpError as `push`.
        """
        async with at_rest(self._fleet, session):
            return _view(session, await self._made(session, wish, commits=ready))

    async def push(self, session: Session, wish: PublishRequest, by: t.By) -> tuple[t.PullEnded, PullView]:
        """Push, and how that ended, on record.

        Raises OpError when it cannot be tried: ``stale`` when its work is not what was seen, ``uncommitted``,
        ``nothing``, ``denied`` by the policy or since the remote is none to push to.
        """
        async with at_rest(self._fleet, session):
            await self._keepers.take_up(session)
            await self.settle(session)
            made = await self._made(session, wish, commits=True)
            return await self._pushed(session, made, by), _view(session, made)

    async def _pushed(self, session: Session, made: _Made, by: t.By) -> t.PullEnded:
        action = made.action
        started = t.PullStarted(
            pull_id=ids.pull_id(),
            remote=action.remote,
            url=action.to.url,
            branch=_branch(action),
            head=made.head,
            by=by,
        )
        wire = action.to_wire()
        await session.append(started)
        call_id = name_call(session.state.seq)
        ref = f"{p.RAN_FOR}{started.pull_id}"
        wire = {**wire, "call": call_id, "ref": ref}
        await session.append(
            t.ToolProposed(call_id=call_id, tool=registry.EXEC, ref=ref, input={"argv": list(action.argv)}),
            t.ToolJudged(
                call_id=call_id,
                action_hash=action_hash(wire),
                verdict=Ruling.ALLOW,
                rule=_BY_YOU,
                reason="a person pushes it from the command line",
                policy=self._settings.policy.hash,
                effects=[str(effect) for effect in action.effects],
                action=wire,
            ),
        )
        await carrying_out.to_its_end(session, self._settings.config, call_id, action.timeout_s + _MORE_S)
        ended = _ended(started, session.state.pulling.status, session.state.pulling.preview)
        await session.append(ended)
        return ended

    async def _made(self, session: Session, wish: PublishRequest, *, commits: bool) -> _Made:
        """The push as the policy lets it through; what is in no commit is committed when it ``commits``.

        Raises OpError.
        """
        call_id = name_call(session.state.seq)
        intent = session.state.intent
        goal = intent.goal if intent is not None else ""
        config = self._settings.config
        own = (session.folder.root.parent.parent, session.folder.keeper_socket.parent.parent, config.file.parent)

        def work() -> _Made:
            tree = open_worktree(private_of(session))
            seen = self._reviewed.hold(tree, session.name, wish.seen, "publish")
            if wish.commit and commits:
                seen = self._reviewed.commit(tree, goal, seen)
            loose = merge.uncommitted(tree, tip(tree))
            if loose and not wish.commit:
                are = "is" if len(loose) == 1 else "are"
                raise OpError(
                    "uncommitted",
                    f"{counted(len(loose), 'file')} of the session {are} in no commit: {named(list(loose))}",
                    f"commit them to its branch first: watchfloor pr --commit {session.sid}",
                )
            force = ["--force"] if wish.force else []
            argv = ["git", "push", *force, wish.remote, f"HEAD:refs/heads/{wish.branch or tree.branch}"]
            facts = gather(tree, registry.EXEC, {"argv": argv, "access": Access.NETWORK}, config.sandbox, map(str, own))
            action = build_action(
                session.sid, call_id, "", registry.EXEC, {"argv": argv, "access": Access.NETWORK}, facts
            )
            if not isinstance(action, PushAction) or not action.to.refspecs:
                raise OpError("denied", f"{' '.join(argv)} is no push that can be made from here")
            if wish.address and wish.address != action.to.url:
                moved = f"{wish.remote} leads to {action.to.url} now, and not to {wish.address} any more"
                raise OpError("stale", f"nothing was sent: {moved}", "look at it again, then publish")
            verdict = decide(action, self._settings.policy)
            if verdict.verdict == Ruling.DENY:
                raise OpError("denied", f"not pushed ({verdict.rule}): {verdict.reason}")
            head = action.to.refspecs[0].sha
            count = int(tree.git.text("rev-list", "--count", head, f"^{tree.base}"))
            if not count and not loose:
                raise OpError("nothing", f"{session.name} has no commit of its own", "there is nothing to push")
            out = tree.git.run("log", "--reverse", "--format=%s", head, f"^{tree.base}")
            subjects = [one for one in out.decode("utf-8", "replace").split("\n") if one]
            if loose:  # the commit that is still to be made
                head = ""
                count += 1
                subjects.append(merge.first_line(goal))
            return _Made(action, head, subjects[:_MOST_COMMITS], count, loose, seen)

        alone = apart(session, self._keepers) if wish.commit and commits else contextlib.nullcontext()
        try:
            async with alone:
                return await session.do("looking at what would be pushed", _LOOK_S, work, lasting=True)
        except WorkspaceError as exc:
            raise OpError(exc.code, f"{session.name} cannot be pushed: {exc}") from exc

    async def opened(self, session: Session, body: t.PullOpened) -> None:
        """Put on record that a request was opened. Raises OpError."""
        async with at_rest(self._fleet, session):
            await self._keepers.take_up(session)
            await session.append(body)

    # -- what was interrupted ----------------------------------------------------------------------

    async def settle(self, session: Session) -> None:
        """End a push that nobody waits for any more: one that runs is waited for, one that has not begun never does.

        Call it with the session's lock and its keeper. Raises OpError, LinkLost.
        """
        started = session.state.pulling.open
        if started is None:
            return
        call_id = session.state.pulling.call_id
        call = session.state.calls.open.get(call_id) if call_id else None
        known = session.track.calls.get(call_id)
        if call is not None and call.stage == CallStage.STARTED:
            judged = known.judged.action if known is not None and known.judged is not None else None
            limit = fields.number(judged or {}, "timeout_s", 0)
            await session.until(lambda: _at_standstill(session, call_id), limit + _MORE_S)
            call = session.state.calls.open.get(call_id)
        if call is not None and call.stage == CallStage.IN_DOUBT:
            evidence = "nobody saw the end of this push; pushing again changes nothing when it arrived"
            await session.append(t.ToolResolved(call_id=call_id, resolution="unknown_told_model", evidence=evidence))
        elif call is not None:
            await session.append(t.ToolEnded(call_id=call_id, status=CallEnd.CANCELLED, preview="it was broken off"))
        await session.append(_ended(started, session.state.pulling.status, session.state.pulling.preview))


def _at_standstill(session: Session, call_id: str) -> bool:
    call = session.state.calls.open.get(call_id)
    return call is None or call.stage != CallStage.STARTED


def _ended(started: t.PullStarted, status: str, preview: str) -> t.PullEnded:
    outcome = {"ok": p.PUSHED, "": p.BROKEN_OFF, "cancelled": p.BROKEN_OFF}.get(status, p.FAILED)
    why = ""
    if outcome == p.BROKEN_OFF:
        why = "nobody saw its end; push again, which changes nothing when it arrived"
    elif outcome == p.FAILED:
        why = " ".join(preview.split())[-_WHY:] or status
    return t.PullEnded(
        pull_id=started.pull_id,
        outcome=outcome,
        remote=started.remote,
        branch=started.branch,
        head=started.head,
        why=why,
        by=started.by,
    )


def _branch(action: PushAction) -> str:
    return action.to.refspecs[0].ref.removeprefix("refs/heads/")


def _view(session: Session, made: _Made) -> PullView:
    s = session.state
    plan = s.plan.entries.values() if s.plan is not None else ()
    passes = s.plan.passes if s.plan is not None else {}
    return PullView(
        sid=session.sid,
        name=session.name,
        goal=s.intent.goal if s.intent is not None else "",
        remote=made.action.remote,
        url=made.action.to.url,
        branch=_branch(made.action),
        head=made.head,
        count=made.count,
        proof=s.ended.proof if s.ended is not None else "",
        commits=[one for one in made.subjects if one],
        loose=list(made.loose),
        seen=made.seen,
        plan=[PlanEntryLine(entry.id, entry.title, passes[entry.id]) for entry in plan],
        checks=[CheckLine(c, code == 0, s.outcomes.get(c, outcomes.FAILS)) for c, code in s.checks.items()],
    )
