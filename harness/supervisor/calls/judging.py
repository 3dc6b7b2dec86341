"""From a proposal to a verdict: its action as it would meet the world now, the policy's word, and a person asked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from harness.domain import problems
from harness.domain.actions.access import Access, asked
from harness.domain.actions.action import Action, InputBlob, canonical, hash_of
from harness.domain.actions.action_diff import differences
from harness.domain.calls.approval_kind import Request
from harness.domain.calls.approval_shapes import Shape
from harness.domain.calls.call_lifecycle import Call
from harness.domain.calls.call_states import CallEnd
from harness.domain.calls.card_facts import CardNotes, in_detail
from harness.domain.calls.gate_kinds import GateKind
from harness.domain.decision import Decision, Ruling
from harness.domain.text.fields import Wire
from harness.domain.unsnapshotted import left_out
from harness.events import types as t
from harness.executor import preconditions
from harness.keeper.calls import exclusive
from harness.keeper.loop.requests import TakeState
from harness.plan.gates import asking, closed
from harness.policy import gated
from harness.policy.build import build_action
from harness.policy.decide import Verdict, decide
from harness.policy.policy_file import Policy
from harness.protocol.config.config import Config
from harness.roles import pinned
from harness.supervisor.base import ids
from harness.supervisor.base.errors import FOR_NOW, Later, OpError, for_now
from harness.supervisor.base.settings import Settings
from harness.supervisor.calls import carrying_out, earlier_yes, tightened
from harness.supervisor.calls.call_caps import ask_cap, over_cap
from harness.supervisor.calls.on_record import input_of, put_blob, stored_action
from harness.supervisor.calls.queue import card_notes, cards, comparison
from harness.supervisor.calls.queue.granting import Covered, Granting
from harness.supervisor.calls.session_folder import HELD_S, ailing, held_for, private_of
from harness.supervisor.calls.work import course, gates, ratchet
from harness.supervisor.fleet.call_records import OpenCall, signature
from harness.supervisor.fleet.session import Session
from harness.tools import registry, validation
from harness.workspace.facts.gather import Kept, ShellAnalysisMissing, gather
from harness.workspace.git.errors import WorkspaceError
from harness.workspace.private_git.private_gitdir import binds
from harness.workspace.tree.worktrees import open_worktree

INLINE_ACTION = 16 * 1024
TOOL_OPTIONS: list[str] = [
    Decision.ALLOW,
    Decision.ALLOW_EDITED,
    Decision.DENY,
    Decision.ANSWER,
    Decision.STOP,
]
_DENIALS = 2
_RETRY_SPACE = 5.0
_SHORTLY = 0.2
_CARD_S = 15.0
"""Seconds that reading the worktree may take for a card."""
_FACTS_S = 90.0
"""Seconds that reading the worktree may take for one call's facts."""
_WAITS = frozenset({"shutting_down", "poisoned", "stale_epoch"})


@dataclass(frozen=True, slots=True)
class Built:
    """An action with its hash and the policy's word on it."""

    action: Action
    wire: Wire
    body: bytes
    """Its canonical form, which is hashed."""
    hash: str
    verdict: Verdict
    policy: str


async def _refuse(session: Session, call: Call, why: str) -> None:
    await session.append(t.ToolEnded(call_id=call.call_id, status=CallEnd.REFUSED, preview=why))


def _unless_denied_before(session: Session, proposed: t.ToolProposed, verdict: Verdict) -> Verdict:
    """The policy's verdict, or a denial where a person would be asked what was denied often enough."""
    name = signature(proposed)
    if verdict.verdict != Ruling.ASK or session.track.denials.get(name, 0) < _DENIALS:
        return verdict
    why = session.track.denied_why.get(name, "")
    return Verdict(
        Ruling.DENY,
        "denied-before",
        f"the human denied exactly this {_DENIALS} times{': ' + why if why else ''}; do something else",
        verdict.risk,
    )


class Judging:
    """Judges proposed calls by the policy in force."""

    def __init__(self, settings: Settings, granting: Granting, approved: Callable[[], Iterable[Shape]]) -> None:
        self._settings = settings
        self._granting = granting
        self._approved = approved

    async def judge(self, session: Session, call: Call, known: OpenCall, unprotected: str = "") -> bool:
        """Judge one proposed call; False when it has to wait for a human's word on a cap.

        ``unprotected``: why no state before it can be kept.
        """
        if not known.proposed.before_work and not await self._within_caps(session, call):
            return False
        if not known.proposed.own and closed(session.state) is not None:
            await gates.step(session)
            return False
        proposed = known.proposed
        given = await input_of(session, proposed)
        if problem := pinned.refusal(session.state, proposed) or validation.validate(proposed.tool, given):
            await _refuse(session, call, problem)
            return True
        assert isinstance(given, dict)
        if registry.answered(proposed.tool):
            await course.answered(session, call, given)
            return True
        ours = proposed.by_harness or proposed.by_judge
        if ours and (problem := await ratchet.guard(session, call.call_id)):
            await _refuse(session, call, problem)
            return True
        try:
            built = await self.build(session, proposed, given, unprotected)
        except WorkspaceError as exc:
            await self._not_examined(session, call, exc)
            return True
        verdict = _unless_denied_before(session, proposed, built.verdict)
        if verdict.verdict == Ruling.ASK and proposed.before_work:
            await _refuse(session, call, f"nobody is asked about a check before the work: {verdict.reason}")
            return True
        if verdict.verdict == Ruling.ASK and (why := exclusive.of_jobs(built.action, session.state.jobs.running)):
            await _refuse(session, call, f"nothing was run: {why}")
            return True
        await self._record(session, call, known, given, built, verdict)
        return True

    async def _not_examined(self, session: Session, call: Call, exc: WorkspaceError) -> None:
        """No action could be made of it. Raises Later when that ends by itself."""
        if later := for_now(exc, "its next call cannot be examined"):
            raise later from exc
        await self._or_hold(session, exc)
        await session.append(
            t.HarnessNote(level="error", text=f"call {call.call_id} cannot be judged: {exc}", component="supervisor"),
            t.ToolEnded(
                call_id=call.call_id, status=CallEnd.REFUSED, preview=f"The harness could not examine this call: {exc}"
            ),
        )

    async def _record(
        self,
        session: Session,
        call: Call,
        known: OpenCall,
        given: dict[str, object],
        built: Built,
        verdict: Verdict,
    ) -> None:
        """The verdict, in one batch with what follows from it: a rule that covers the call, its end, or a request."""
        covered: Covered | None = None
        if verdict.verdict == Ruling.ASK:
            case = await self._granting.case(session, call.call_id, built.action, verdict)
            covered = await self._granting.covered(case)
        if covered is not None:
            verdict = covered.verdict(verdict)
        judged = await self._judged(session, call.call_id, built, verdict)
        if covered is not None:
            await session.append(judged, covered.record)
        elif verdict.verdict == Ruling.DENY:
            told = f"Denied by policy ({verdict.rule}): {verdict.reason}"
            await session.append(judged, t.ToolEnded(call_id=call.call_id, status=CallEnd.DENIED, preview=told))
        elif verdict.verdict == Ruling.ASK:
            await session.append(judged, await self._request(session, known, given, built, verdict))
        else:
            await session.append(judged, cls="C")  # nothing happens by it before its start, which is durable with it

    async def _request(
        self, session: Session, known: OpenCall, given: dict[str, object], built: Built, verdict: Verdict
    ) -> t.ApprovalRequested:
        """What a person is asked, with what is beside the action on its card."""
        notes = await card_notes.notes(session, built.action, self._approved())
        asked = t.ApprovalRequested(
            approval_id=ids.approval_id(),
            kind=Request.TOOL,
            title=cards.title(built.action),
            options=TOOL_OPTIONS,
            call_id=known.proposed.call_id,
            action_hash=built.hash,
            risk=verdict.risk,
            detail=_detail(built, verdict, await self._changed(session, known, built, notes)) | in_detail(notes),
        )
        try:
            shown = await session.do("reading what it would change", _CARD_S, lambda: cards.diff(built.action, given))
        except WorkspaceError as exc:
            shown = cards.unread(exc)
        session.shown.compared(asked.approval_id, shown)
        return msgspec.structs.replace(asked, risk=cards.risk(asked.risk, shown))

    @staticmethod
    async def _changed(session: Session, known: OpenCall, built: Built, notes: CardNotes) -> list[str]:
        """How the world, and what would run in it, differ from what a person was shown the last time."""
        call_id = known.proposed.call_id
        told = session.track.changed.get(call_id)
        if told is None:
            return []
        before = await stored_action(session, known)
        rewritten = comparison.rewritten(session.track.shown_runs.get(call_id, []), notes.runs)
        return [*told, *differences(before or built.wire, built.wire), *rewritten]

    @staticmethod
    async def _or_hold(session: Session, exc: WorkspaceError) -> None:
        """Raise Later when it is the harness's own ground that failed: the agent can do nothing about that, and is
        neither told nor paid for it.
        """
        why = str(exc) if isinstance(exc, ShellAnalysisMissing) else await ailing(session)
        if why:
            raise Later(HELD_S, held_for(why))

    async def build(
        self, session: Session, proposed: t.ToolProposed, given: dict[str, object], unprotected: str = ""
    ) -> Built:
        """The canonical action of a proposal with this input, and the verdict in force now.

        Whatever a person will be asked about is bound to the state of the worktree that he is shown. Raises
        WorkspaceError, OpError, Later.
        """
        policy = self._settings.policy
        kept = Kept(unprotected=unprotected)
        if asked(given) != Access.SANDBOX or (not unprotected and _first_delete(session, proposed)):
            kept = await self._world(session, proposed.call_id)
        action = await self._action(session, proposed, given, kept)
        verdict = _verdict(session, proposed, action, policy, kept)
        if verdict.verdict == Ruling.ASK and not kept.snapshot and not kept.unprotected:
            kept = await self._world(session, proposed.call_id)
            action = await self._action(session, proposed, given, kept)
            verdict = _verdict(session, proposed, action, policy, kept)
        wire = action.to_wire()
        body = canonical(wire)
        return Built(action, wire, body, hash_of(body), verdict, policy.hash)

    async def _world(self, session: Session, call_id: str) -> Kept:
        """Keep the worktree as it is now, looked at in full.

        Raises Later when that only has to wait (no space, an undo), OpError, WorkspaceError.
        """
        # what brings its git directory in step with the repository would make another state of it
        await session.do("bringing its refs in step", _FACTS_S, lambda: binds(open_worktree(private_of(session))))
        try:
            wanted = TakeState(
                f"shown for {call_id}", full=True, undo_limits=carrying_out.undo_limits_of(self._settings.config.undo)
            )
            kept = await session.keeper().ask(wanted, None)
        except OpError as exc:
            if exc.code == "busy":
                raise Later(_SHORTLY) from exc
            if exc.code in FOR_NOW:
                raise Later(_RETRY_SPACE, problems.of_code(exc.code, exc.message)) from exc
            if exc.code in _WAITS:
                raise
            return Kept(unprotected=exc.message)
        return Kept(snapshot=kept.snapshot, left_out=left_out(kept.left_out, list(kept.left_out_names)))

    async def changed_since_shown(self, session: Session, call_id: str, action: Action) -> list[str]:
        """What is no longer as a person was shown it, one sentence each. Raises OpError."""
        expected = action.world
        difference: list[str] = []
        if (shown := action.snapshot) is not None:
            wanted = TakeState(f"before {call_id} was edited", full=True, since=shown)
            difference = list((await session.keeper().ask(wanted, None)).difference or ())
        observed = await session.do("looking at the world again", _CARD_S, lambda: preconditions.observe(action))
        return difference + preconditions.difference({k: v for k, v in expected.items() if k != "snapshot"}, observed)

    async def _action(self, session: Session, proposed: t.ToolProposed, given: dict[str, object], kept: Kept) -> Action:
        what = f"examining call {proposed.call_id}"
        return await session.do(
            what, _FACTS_S, lambda: self._gather(session, proposed, given, self._settings.config, kept)
        )

    def _gather(
        self, session: Session, proposed: t.ToolProposed, given: dict[str, object], config: Config, kept: Kept
    ) -> Action:
        """Gather the facts and build the action (blocking)."""
        own = [session.folder.root.parent.parent, session.folder.keeper_socket.parent.parent, config.file.parent]
        if config.model.api_key_file:
            own.append(Path(config.model.api_key_file).expanduser())
        facts = gather(open_worktree(private_of(session)), proposed.tool, given, config.sandbox, map(str, own), kept)
        if proposed.only_reads:
            facts = replace(facts, sandbox=facts.sandbox.only_read())
        jobs = config.jobs
        facts = replace(facts, job_s=jobs.limit, job_most_s=jobs.longest, job_log_bytes=jobs.log)
        ref = proposed.input_blob
        large = InputBlob(ref.sha, ref.bytes) if ref is not None else None
        return build_action(session.sid, proposed.call_id, proposed.ref, proposed.tool, given, facts, input_blob=large)

    async def _judged(self, session: Session, call_id: str, built: Built, verdict: Verdict) -> t.ToolJudged:
        inline: Wire | None = built.wire
        ref = None
        if len(built.body) > INLINE_ACTION:
            inline = None
            ref = await put_blob(session, built.body, "application/json")
        return t.ToolJudged(
            call_id=call_id,
            action_hash=built.hash,
            verdict=verdict.verdict,
            rule=verdict.rule,
            reason=verdict.reason,
            policy=built.policy,
            effects=spelled(built.action),
            action=inline,
            action_blob=ref,
        )

    async def judged_by_human(self, session: Session, call_id: str, built: Built) -> t.ToolJudged:
        """The verdict on an action that a human edited: allowed by its editor."""
        return await self._judged(
            session,
            call_id,
            built,
            Verdict(
                Ruling.ALLOW,
                earlier_yes.EDITED,
                "a human changed the input and allowed the result",
                built.verdict.risk,
            ),
        )

    async def _within_caps(self, session: Session, call: Call) -> bool:
        s = session.state
        reached = over_cap(session, datetime.now(UTC))
        if reached is None:
            return True
        if s.finish_up is not None:
            await session.append(
                t.ToolEnded(
                    call_id=call.call_id,
                    status=CallEnd.REFUSED,
                    preview=f"The cap {reached.cap} is reached ({reached.used} of {reached.limit}); finish up.",
                )
            )
            return True
        await ask_cap(session, reached)
        return False


def _first_delete(session: Session, proposed: t.ToolProposed) -> bool:
    """True for a call that a gate on deletions has to judge before any call told what is not kept of the worktree."""
    if proposed.own or session.track.left_out is not None or not registry.may_change_files(proposed.tool):
        return False
    phase = asking(session.state)
    return phase is not None and GateKind.DELETE in phase.asks


def _verdict(session: Session, proposed: t.ToolProposed, action: Action, policy: Policy, kept: Kept) -> Verdict:
    """The policy's word, and for a call of the agent those of its role, its repository and its plan's gate, which can
    only be harder.
    """
    if proposed.own:
        return decide(action, policy)
    found = tightened.of_session(session.state, action, policy)
    phase = asking(session.state)
    unkept = kept.left_out if kept.snapshot else session.track.left_out or ()
    return found if phase is None else gated.tightened(found, action, phase.name, phase.asks, unkept)


def _detail(built: Built, verdict: Verdict, changed: list[str]) -> dict[str, object]:
    """What a request says beside its action. ``changed``: how the world differs from what was shown the last time."""
    detail: dict[str, object] = {"effects": spelled(built.action), "rule": verdict.rule, "reason": verdict.reason}
    return detail | {"changed": changed} if changed else detail


def spelled(action: Action) -> list[str]:
    """Its effects as a record has them."""
    return [str(effect) for effect in action.effects]
