"""Merging a session's work: made beside everything, checked in the sandbox, then moved in one step. What was
interrupted is settled by what its branch says: it moved, or nothing happened.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from harness.domain.calls.call_states import CallEnd, CallStage
from harness.events import types as t
from harness.events.work import merge_events as m
from harness.keeper.loop.requests import CancelCall
from harness.projections.state.merging import MergeLook, MergeState, named
from harness.supervisor.base import ids
from harness.supervisor.base.errors import LinkLost, OpError, for_now
from harness.supervisor.base.settings import Settings
from harness.supervisor.base.threads import at_home
from harness.supervisor.calls.session_folder import private_of
from harness.supervisor.calls.work import on_result, results
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.fleet.session import Session
from harness.supervisor.sessions.keepers import Keepers
from harness.supervisor.sessions.taking import handing_back
from harness.supervisor.sessions.taking.apart import apart
from harness.supervisor.sessions.taking.at_rest import at_rest
from harness.supervisor.sessions.taking.reviewed import Reviewed
from harness.workspace.git.discard import discard
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.git.merge_rules import Refusal, Situation, refusal
from harness.workspace.git.run import open_repository
from harness.workspace.merge import checkout, merge
from harness.workspace.merge.checkout import CannotMove, NotFollowed
from harness.workspace.merge.merge import MergeConflict, MergePlace, MergeRequest, MergeResult
from harness.workspace.merge.picked import Taken
from harness.workspace.private_git.private_gitdir import Worktree
from harness.workspace.tree.worktrees import open_worktree

_MAKE_S = 300.0
"""Seconds that looking at both sides, and bringing them together, may take."""
_CANCEL_S = 20.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What a person wants: ``wish`` names the way and the place; ``checks``: run them on the result first; ``commit``:
    first commit what is in no commit; ``seen``: what they looked at (`Diff.seen`), empty when they looked at nothing.
    """

    wish: MergeRequest
    checks: bool = True
    commit: bool = False
    seen: str = ""


class Merging:
    """Answers the op, and settles what a supervisor before us left."""

    def __init__(self, fleet: Fleet, keepers: Keepers, settings: Settings, reviewed: Reviewed) -> None:
        self._reviewed = reviewed
        self._fleet = fleet
        self._keepers = keepers
        self._settings = settings

    async def run(self, session: Session, asked: Asked, by: t.By) -> t.MergeEnded:
        """How it ended, on record. The caller starts the session's worker afterwards, which puts its keeper away.

        Raises OpError when it cannot be tried: what of the rules of a merge stands in the way, ``busy``,
        ``not_ended``.
        """
        async with at_rest(self._fleet, session):
            if session.state.merging.open is not None:
                await self._keepers.take_up(session)
                await self.settle(session)
            return await self._merged(session, asked, by)

    async def look(self, session: Session, wish: MergeRequest) -> MergeLook:
        """Where it would go, and what stands in the way; nothing is made. Raises OpError ``not_ended``."""
        if not session.state.terminal:
            raise OpError("not_ended", f"{session.name} has not ended, so its work may still change")

        taken = _taken(session.state.merging)

        def work() -> MergeLook:
            seen, _ = merge.survey(open_worktree(private_of(session)), session.sid, wish, taken)
            no = refusal(seen) or Refusal("", "")
            return MergeLook(repo=seen.repo, into=seen.into, commits=seen.commits, no=no.message, hint=no.hint)

        try:
            return await session.look("looking where its work would go", _MAKE_S, work)
        except WorkspaceError as exc:
            raise OpError(exc.code, f"{session.name} cannot be merged: {exc}") from exc

    async def _merged(self, session: Session, asked: Asked, by: t.By) -> t.MergeEnded:
        _not_blind(session, asked)
        tree, place, seen, made = await self._made(session, asked)
        head = seen.head
        await self._keepers.take_up(session)
        merge_id = ids.merge_id()
        if isinstance(made, MergeConflict):
            at = f"at {made.at}" if made.at else ""
            ended = _ended(merge_id, m.CONFLICTS, asked.wish.how, place, head, why=at, by=by, conflicts=made.files)
            await session.append(ended)
            return ended
        commands = list(session.state.checks) if asked.checks else []
        if commands and not tree.root.is_dir():
            raise OpError(
                "no_worktree",
                f"the worktree of {session.name} is gone, so its checks cannot run on the result",
                f"merge without them: watchfloor merge --no-checks {session.sid}",
            )
        started = t.MergeStarted(
            merge_id=merge_id,
            how=made.how,
            into=place.into,
            repo=str(place.root),
            onto=place.onto,
            head=head,
            result=made.commit,
            commits=seen.commits,
            checks=len(commands),
            decides=list(made.decides),
            by=by,
        )
        await session.append(started)
        checked = await self._checked(session, tree, started, commands)
        if failing := [one for one in checked if not one.passed]:
            ended = _ended(merge_id, m.CHECKS_FAILED, asked.wish.how, place, head, why=_told(failing), by=by)
        else:
            ended = await self._moved(session, place, started)
        await session.do("letting its result go", _MAKE_S, lambda: merge.let_go(tree), lasting=True)
        ended = msgspec.structs.replace(ended, checked=[m.CheckedOn(one.command, one.outcome) for one in checked])
        await session.append(ended)
        return ended

    async def _made(
        self, session: Session, asked: Asked
    ) -> tuple[Worktree, MergePlace, Situation, MergeResult | MergeConflict]:
        """Both sides looked at and brought together. Raises OpError."""
        intent = session.state.intent
        goal = intent.goal if intent is not None else ""
        rules = results.rules_of(session.state)
        taken = _taken(session.state.merging)

        def work() -> tuple[Worktree, MergePlace, Situation, MergeResult | MergeConflict]:
            tree = open_worktree(private_of(session))
            known = self._reviewed.hold(tree, session.name, asked.seen, "merge")
            if asked.commit:
                self._reviewed.commit(tree, asked.wish.message or goal, known)
            seen, place = merge.survey(tree, session.sid, asked.wish, taken)
            if (no := refusal(seen)) is not None:
                raise OpError(*no)
            assert place is not None
            made = merge.make(tree, place, seen.head, asked.wish, session.name, goal, rules, taken)
            if made is None:
                raise OpError(
                    "nothing", f"{place.into} holds all of {tree.branch} already", "there is nothing to merge"
                )
            return tree, place, seen, made

        alone = apart(session, self._keepers) if asked.commit else contextlib.nullcontext()
        try:
            async with alone:
                return await session.do("bringing its work together with the branch", _MAKE_S, work, lasting=True)
        except WorkspaceError as exc:
            raise OpError(exc.code, f"{session.name} cannot be merged: {exc}") from exc

    async def _checked(
        self, session: Session, tree: Worktree, started: t.MergeStarted, commands: Sequence[str]
    ) -> list[t.MergeChecked]:
        """What the checks say on the result; its files are gone afterwards."""
        if not commands:
            return []
        root = _result_of(session)
        await session.do("laying out the result", _MAKE_S, lambda: _fresh(tree, started.result, root), lasting=True)
        try:
            return [
                await on_result.check(session, self._settings, started.merge_id, command, root) for command in commands
            ]
        finally:
            await at_home(_clear, root.parent)

    async def _moved(self, session: Session, place: MergePlace, started: t.MergeStarted) -> t.MergeEnded:
        outcome = m.MERGED
        why = ""

        def move() -> str:
            checkout.move(place, started.onto, started.result, started.merge_id, session.folder.git)
            return checkout.behind(place, started.onto, started.result)

        try:
            why = await session.do(f"moving {place.into}", _MAKE_S, move, lasting=True)
        except NotFollowed as exc:
            why = str(exc)
        except CannotMove as exc:
            outcome = m.REFUSED
            why = str(exc)
        return _over(started, outcome, why)

    async def hand_back(self, session: Session, words: str, by: t.By) -> tuple[t.MergeHandedBack, str]:
        """What is put on record, and what the agent is told, so that it mends what kept its work from being merged.

        Raises OpError ``nothing`` when nothing did.
        """
        ended = session.state.merging.ended
        intent = session.state.intent
        if ended is None or intent is None or not handing_back.able(ended):
            raise OpError(
                "nothing",
                f"nothing keeps the work of {session.name} from being merged, as far as anybody tried",
                f"try it: watchfloor merge {session.sid}",
            )
        rules = results.rules_of(session.state)

        def work() -> tuple[str, dict[str, str]]:
            tree = open_worktree(private_of(session))
            onto = tree.git.commit(f"refs/heads/{ended.into}")
            if onto is None:
                raise OpError("not_found", f"there is no branch {ended.into} any more", "merge into another one")
            return onto, merge.deciding(tree, onto, rules)

        try:
            onto, accepts = await session.do("reading what decides on the branch", _MAKE_S, work)
        except WorkspaceError as exc:
            raise OpError(exc.code, f"{session.name} cannot be handed its merge: {exc}") from exc
        files = [t.ViolatedFile(path, "changed", sha) for path, sha in accepts.items()]
        body = t.MergeHandedBack(into=ended.into, onto=onto, files=files, by=by)
        return body, handing_back.told(ended, onto, words)

    # -- what was interrupted ----------------------------------------------------------------------

    async def settle(self, session: Session) -> None:
        """End a merge that nobody carries out any more, by what its branch says. Call it with the session's lock and
        its keeper. Raises OpError, LinkLost, WorkspaceError (for what ends by itself alone).
        """
        started = session.state.merging.open
        if started is None:
            return
        await self._end_calls(session)
        await at_home(_clear, _result_of(session).parent)
        try:
            ended = await session.do(
                "seeing what came of its merge", _MAKE_S, lambda: _settled(session, started), lasting=True
            )
        except WorkspaceError as exc:
            if for_now(exc, "its merge") is not None:
                raise
            ended = _over(started, m.BROKEN_OFF, f"what came of it cannot be seen: {exc}")
        await session.append(ended)

    @staticmethod
    async def _end_calls(session: Session) -> None:
        for call_id, known in list(session.track.calls.items()):
            call = session.state.calls.open.get(call_id)
            if call is None or not known.proposed.by_merge:
                continue
            if call.stage == CallStage.STARTED:
                await _cancelled(session, call_id)
            elif call.stage == CallStage.IN_DOUBT:
                why = "it ran on files of a merge that was broken off, which are gone"
                await session.append(t.ToolResolved(call_id=call_id, resolution="unknown_told_model", evidence=why))
            else:
                await session.append(
                    t.ToolEnded(call_id=call_id, status=CallEnd.CANCELLED, preview="the merge was broken off")
                )


def _not_blind(session: Session, asked: Asked) -> None:
    """Raise OpError ``blind`` when every check hides its exit code, and no person lets one count."""
    s = session.state
    hidden = [c for c in s.checks if c not in s.ratchet.trusted]
    if not asked.checks or len(hidden) < len(s.checks) or not s.masking.only(hidden):
        return
    raise OpError(
        "blind",
        f"nothing would show that the result works: `{hidden[0]}` hides an exit code and decides nothing"
        f" ({s.masking.hides(hidden[0])})",
        f"give it another check: watchfloor continue {session.sid} --check …; or merge on your own word: watchfloor"
        f" merge --no-checks {session.sid}",
    )


async def _cancelled(session: Session, call_id: str) -> None:
    with contextlib.suppress(OpError, LinkLost):  # it ended just now, or its keeper says what became of it
        await session.keeper().ask(CancelCall(call_id))
        await session.until(lambda: call_id not in session.state.calls.open, _CANCEL_S)


def _settled(session: Session, started: t.MergeStarted) -> t.MergeEnded:
    """Blocking."""
    tree = open_worktree(private_of(session))
    repository = open_repository(Path(started.repo))
    shown = not repository.bare and checkout.branch_of(repository.git_dir) == started.into
    place = MergePlace(repository.common, repository.git_dir, repository.root, started.into, started.onto, shown)
    if not checkout.arrived(place.git_dir, place.ref, started.result):
        checkout.unlock(place.git_dir, started.merge_id)
        merge.let_go(tree)
        return _over(started, m.BROKEN_OFF, "it was interrupted before anything was moved; merge again")
    why = ""
    try:
        if shown:
            checkout.finish(place, started.onto, started.result, started.merge_id, session.folder.git)
    except (NotFollowed, CannotMove) as exc:
        why = str(exc)
    merge.let_go(tree)
    return _over(started, m.MERGED, why)


def _taken(known: MergeState) -> Taken | None:
    return Taken(known.taken.head, known.taken.commit, known.taken.onto) if known.taken is not None else None


def merged(known: MergeState, tree: Worktree) -> list[str]:
    """The commit of the session whose work a branch still holds in other commits, if there is one (blocking)."""
    ended = known.ended
    if ended is None or not known.merged:
        return []
    return [ended.head] if checkout.arrived(tree.common, f"refs/heads/{ended.into}", ended.commit) else []


def _over(started: t.MergeStarted, outcome: str, why: str) -> t.MergeEnded:
    return t.MergeEnded(
        merge_id=started.merge_id,
        outcome=outcome,
        into=started.into,
        how=started.how,
        onto=started.onto,
        head=started.head,
        commit=started.result if outcome == m.MERGED else "",
        why=why,
        by=started.by,
    )


def _ended(
    merge_id: str,
    outcome: str,
    how: str,
    place: MergePlace,
    head: str,
    *,
    why: str,
    by: t.By,
    conflicts: Sequence[str] = (),
) -> t.MergeEnded:
    return t.MergeEnded(
        merge_id=merge_id,
        outcome=outcome,
        into=place.into,
        how=how,
        onto=place.onto,
        head=head,
        conflicts=list(conflicts),
        why=why,
        by=by,
    )


def _told(failing: list[t.MergeChecked]) -> str:
    return named([f"{one.command} ({one.why})" for one in failing])


def _result_of(session: Session) -> Path:
    return session.folder.root / "merge" / "tree"


def _fresh(tree: Worktree, commit: str, root: Path) -> None:
    _clear(root.parent)
    root.parent.mkdir(mode=0o700)
    merge.lay_out(tree, commit, root)


def _clear(folder: Path) -> None:
    if folder.is_dir() and not folder.is_symlink():
        discard(folder)
