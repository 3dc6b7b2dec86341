"""Every call on its way: judged, asked or denied, executed, settled. Level-triggered: `step` looks at the fold and
does what is due.

Nothing here is remembered that the log does not say, so a supervisor that dies anywhere goes on from the log.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from harness.events import blobs, tools, trouble
from harness.events import types as t
from harness.events.action import (
    Action,
    BadAction,
    InputBlob,
    PushAction,
    Wire,
    action_hash,
    canonical,
    from_wire,
)
from harness.events.calls import Call
from harness.events.request import Request
from harness.events.trouble import Trouble
from harness.hands import precheck, push
from harness.policy.build import build_action
from harness.policy.judge import Verdict, judge
from harness.protocol.config import Config
from harness.supervisor import ids
from harness.supervisor.calls import cards, earlier_yes
from harness.supervisor.calls.call_caps import ask_cap, over_cap
from harness.supervisor.calls.doubt import file_outcome
from harness.supervisor.errors import Later, LinkLost, OpError, out_of_space
from harness.supervisor.fleet.call_records import OpenCall, signature
from harness.supervisor.fleet.session import Session
from harness.supervisor.settings import Settings
from harness.supervisor.threads import at_home
from harness.workspace import health
from harness.workspace.errors import WorkspaceError
from harness.workspace.gather_facts import Kept, ShellAnalysisMissing, gather
from harness.workspace.private import publish
from harness.workspace.worktrees import open_worktree

INLINE_ACTION = 16 * 1024
TOOL_OPTIONS = ["allow", "allow_edited", "deny", "answer", "stop"]
_DENIALS = 2
_STALE_LIMIT = 5
_RETRY_SPACE = 5.0
_SHORTLY = 0.2
_MET_S = 1.0
_CARD_S = 15.0
"""Seconds that reading the worktree may take for a card."""
_FACTS_S = 90.0
"""Seconds that reading the worktree may take for one call's facts."""
_PUBLISH_S = 120.0
"""Seconds that reading the worktree may take for a publish."""
_PROBE_S = 90.0
"""Seconds that asking a remote may take."""
HELD_S = 10.0
"""Seconds after which the ground of a held session is looked at again."""
_BROKEN = frozenset({"poisoned", "lost"})
_WAITS = frozenset({"shutting_down", "poisoned", "stale_epoch"})
_LATER = frozenset({"not_started", "conflict", "shutting_down", "cancelled", "cannot_start"})


@dataclass(frozen=True, slots=True)
class Built:
    """An action with its hash and the policy's word on it."""

    action: Action
    hash: str
    verdict: Verdict
    policy: str


class CallFlow:
    """Drives the open calls of any session; holds no state of its own but counters against endless staleness."""

    def __init__(
        self,
        settings: Settings,
        later: Callable[[Session, float], None],
        met: Callable[[Session, Exception], Awaitable[None]],
    ) -> None:
        """``met`` handles what a call ended in that is none of its own ends, as it handles that of the session's
        worker.
        """
        self._settings = settings
        self._later = later
        self._met = met
        self._stale: dict[tuple[str, str], int] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    # -- what is due -------------------------------------------------------------------------------

    async def step(self, session: Session) -> None:
        """Do everything that is due for this session's calls. Raises OpError, LinkLost, Later."""
        if session.blocked and (why := await ailing(session)):
            raise Later(HELD_S, held_for(why))  # nothing begins on ground that is known to be broken
        while await self._one(session):
            pass
        if session.track.ran_command and not session.doing_calls:
            session.track.ran_command = False
            await self._publish(session)

    async def _one(self, session: Session) -> bool:
        for call in list(session.state.calls.open.values()):
            known = session.track.calls.get(call.call_id)
            if known is None or call.call_id in session.executing:
                return False
            match call.stage:
                case "asked":
                    # what was shown must stay as it was shown: nothing else of the session runs meanwhile
                    return False
                case "started":
                    return False
                case "in_doubt":
                    if call.call_id in session.track.doubt_asked:
                        continue
                    await self._doubt(session, call, known)
                    return True
                case "decided":
                    if not call.allowed_by:
                        await self._refused_by_human(session, call, known)
                    elif why := await self._now_denied(session, known):
                        await session.append(
                            t.ApprovalStale(approval_id=call.approval_id, call_id=call.call_id, difference=[why])
                        )
                    else:
                        self._start(session, call.call_id)
                    return True
                case "judged" if call.verdict == "allow" and await self._still_allowed(session, known):
                    self._start(session, call.call_id)
                    return True
                case "judged" if call.verdict == "deny":
                    await session.append(
                        t.ToolEnded(call_id=call.call_id, status="denied", preview=self._denial(known))
                    )
                    return True
            return await self._judge(session, call, known)
        return False

    async def _still_allowed(self, session: Session, known: OpenCall) -> bool:
        """False when the policy is another one than the call was allowed by: then it is judged anew; a human's edit
        falls only to a denial.
        """
        policy = self._settings.policy
        if known.judged is None or known.judged.policy == policy.hash:
            return True
        return earlier_yes.stands(known.judged, await self.action_of(session, known), policy)

    async def _now_denied(self, session: Session, known: OpenCall) -> str:
        """Why the policy in force now denies what was allowed by a human under an earlier one; empty when it does
        not.
        """
        policy = self._settings.policy
        if known.judged is None or known.judged.policy == policy.hash:
            return ""
        return earlier_yes.denial(known.judged, await self.action_of(session, known), policy)

    @staticmethod
    def _denial(known: OpenCall) -> str:
        j = known.judged
        return f"Denied by policy ({j.rule}): {j.reason}" if j is not None else "Denied by policy."

    async def _refused_by_human(self, session: Session, call: Call, known: OpenCall) -> None:
        d = known.decided
        await session.append(outcome_of(call.call_id, d.decision if d else "deny", d.message if d else ""))

    # -- judging -----------------------------------------------------------------------------------

    async def _judge(self, session: Session, call: Call, known: OpenCall, unprotected: str = "") -> bool:
        """Judge one proposed call; False when it has to wait for a human's word on a cap.

        ``unprotected``: why no state before it can be kept.
        """
        if not await self._within_caps(session, call):
            return False
        given = await self.input_of(session, known.proposed)
        proposed = known.proposed
        unknown = (
            "check is not a tool of yours; the harness runs the checks itself"
            if proposed.tool == tools.CHECK and not proposed.by_harness
            else ""
        )
        if problem := unknown or tools.validate(proposed.tool, given):
            await session.append(t.ToolEnded(call_id=call.call_id, status="refused", preview=problem))
            return True
        assert isinstance(given, dict)
        try:
            built = await self.build(session, known.proposed, given, unprotected)
        except WorkspaceError as exc:
            if out_of_space(exc):
                raise Later(_RETRY_SPACE, Trouble("no_space", f"its next call cannot be examined: {exc}")) from exc
            await self._or_hold(session, exc)
            await session.append(
                t.HarnessNote(
                    level="error", text=f"call {call.call_id} cannot be judged: {exc}", component="supervisor"
                ),
                t.ToolEnded(
                    call_id=call.call_id, status="refused", preview=f"The harness could not examine this call: {exc}"
                ),
            )
            return True
        name = signature(known.proposed)
        verdict = built.verdict
        if verdict.verdict == "ask" and session.track.denials.get(name, 0) >= _DENIALS:
            why = session.track.denied_why.get(name, "")
            verdict = Verdict(
                "deny",
                "denied-before",
                f"the human denied exactly this {_DENIALS} times{': ' + why if why else ''}; do something else",
                verdict.risk,
            )
        judged = await self._judged(session, call.call_id, built, verdict)
        if verdict.verdict == "deny":
            await session.append(
                judged,
                t.ToolEnded(
                    call_id=call.call_id,
                    status="denied",
                    preview=f"Denied by policy ({verdict.rule}): {verdict.reason}",
                ),
            )
        elif verdict.verdict == "ask":
            asked = t.ApprovalRequested(
                approval_id=ids.approval_id(),
                kind=Request.TOOL,
                title=cards.title(built.action),
                options=TOOL_OPTIONS,
                call_id=call.call_id,
                action_hash=built.hash,
                risk=verdict.risk,
                detail=_detail(built, verdict, session.track.changed.get(call.call_id, [])),
            )
            try:
                shown = await session.do(
                    "reading what it would change", _CARD_S, lambda: cards.diff(built.action, given)
                )
            except WorkspaceError as exc:
                shown = cards.unread(exc)
            session.diffs[asked.approval_id] = shown
            asked = msgspec.structs.replace(asked, risk=cards.risk(asked.risk, shown))
            await session.append(judged, asked)
        else:
            await session.append(judged)
        return True

    @staticmethod
    async def _or_hold(session: Session, exc: WorkspaceError) -> None:
        """Raise Later when it is the harness's own ground that failed: the agent can do nothing about that, and is
        neither told nor paid for it.
        """
        why = str(exc) if isinstance(exc, ShellAnalysisMissing) else await ailing(session)
        if why:
            raise Later(HELD_S, held_for(why))

    async def build(
        self, session: Session, proposed: t.ToolProposed, given: dict[str, Any], unprotected: str = ""
    ) -> Built:
        """The canonical action of a proposal with this input, and the verdict in force now.

        Whatever a person will be asked about is bound to the state of the worktree that he is shown. Raises
        WorkspaceError, OpError, Later.
        """
        policy = self._settings.policy
        kept = Kept(unprotected=unprotected)
        if given.get("access", "fence") != "fence":
            kept = await self._world(session, proposed.call_id)
        action = await self._action(session, proposed, given, kept)
        verdict = judge(action, policy)
        if verdict.verdict == "ask" and not kept.snapshot and not kept.unprotected:
            kept = await self._world(session, proposed.call_id)
            action = await self._action(session, proposed, given, kept)
            verdict = judge(action, policy)
        return Built(action, action_hash(action.to_wire()), verdict, policy.hash)

    async def _world(self, session: Session, call_id: str) -> Kept:
        """Keep the worktree as it is now, looked at in full.

        Raises Later when that only has to wait (no space, an undo), OpError.
        """
        try:
            reply = await session.keeper().call(
                "snapshot",
                wait=None,
                label=f"shown for {call_id}",
                full=True,
                undo_limits=self._settings.config.undo.to_wire(),
            )
        except OpError as exc:
            if exc.code == "busy":
                raise Later(_SHORTLY) from exc
            if exc.code == "no_space":
                raise Later(_RETRY_SPACE, trouble.of_code(exc.code, exc.message)) from exc
            if exc.code in _WAITS:
                raise
            return Kept(unprotected=exc.message)
        session.trouble = trouble.NONE
        return Kept(snapshot=str(reply["snapshot"]))

    async def changed_since_shown(self, session: Session, call_id: str, action: Action) -> list[str]:
        """What is no longer as a person was shown it, one sentence each. Raises OpError."""
        expected = action.world
        difference: list[str] = []
        if (shown := expected.get("snapshot")) is not None:
            reply = await session.keeper().call(
                "snapshot", wait=None, label=f"before {call_id} was edited", full=True, since=shown
            )
            difference = [str(d) for d in reply["difference"]]
        observed = await session.do("looking at the world again", _CARD_S, lambda: precheck.observe(action))
        return difference + precheck.difference({k: v for k, v in expected.items() if k != "snapshot"}, observed)

    async def _action(self, session: Session, proposed: t.ToolProposed, given: dict[str, Any], kept: Kept) -> Action:
        what = f"examining call {proposed.call_id}"
        return await session.do(
            what, _FACTS_S, lambda: self._gather(session, proposed, given, self._settings.config, kept)
        )

    def _gather(
        self, session: Session, proposed: t.ToolProposed, given: dict[str, Any], config: Config, kept: Kept
    ) -> Action:
        """Gather the facts and build the action (blocking)."""
        own = [session.folder.root.parent.parent, session.folder.keeper_socket.parent.parent, config.file.parent]
        if config.model.api_key_file:
            own.append(Path(config.model.api_key_file).expanduser())
        facts = gather(open_worktree(private_of(session)), proposed.tool, given, config.fence, map(str, own), kept)
        ref = proposed.input_blob
        large = InputBlob(ref.sha, ref.bytes) if ref is not None else None
        return build_action(session.sid, proposed.call_id, proposed.ref, proposed.tool, given, facts, input_blob=large)

    async def _judged(self, session: Session, call_id: str, built: Built, verdict: Verdict) -> t.ToolJudged:
        wire = built.action.to_wire()
        body = canonical(wire)
        inline: Wire | None = wire
        ref = None
        if len(body) > INLINE_ACTION:
            inline = None
            ref = await put_blob(session, body, "application/json")
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
                "allow",
                earlier_yes.EDITED,
                "a human changed the input and allowed the result",
                built.verdict.risk,
            ),
        )

    @staticmethod
    async def input_of(session: Session, proposed: t.ToolProposed) -> object:
        """The whole input of a proposal, from the log or its blob; None when it cannot be read."""
        if proposed.input_blob is None:
            return proposed.input
        raw = await at_home(blobs.get, session.folder.blobs, proposed.input_blob.sha)
        try:
            return json.loads(raw)
        except ValueError:
            return None

    @staticmethod
    async def stored_action(session: Session, known: OpenCall) -> Wire | None:
        """The judged action of an open call as it is recorded, from the log or its blob."""
        j = known.judged
        if j is None:
            return None
        if j.action is not None:
            return j.action
        if j.action_blob is None:
            return None
        found = json.loads(await at_home(blobs.get, session.folder.blobs, j.action_blob.sha))
        return found if isinstance(found, dict) else None

    @staticmethod
    async def action_of(session: Session, known: OpenCall) -> Action | None:
        """The judged action of an open call; None when there is none, or what is recorded is none."""
        stored = await CallFlow.stored_action(session, known)
        try:
            return from_wire(stored) if stored is not None else None
        except BadAction:
            return None

    # -- caps --------------------------------------------------------------------------------------

    async def _within_caps(self, session: Session, call: Call) -> bool:
        s = session.state
        reached = over_cap(session, datetime.now(UTC))
        if reached is None:
            return True
        if s.finish_up is not None:
            await session.append(
                t.ToolEnded(
                    call_id=call.call_id,
                    status="refused",
                    preview=f"The cap {reached.cap} is reached ({reached.used} of {reached.limit}); finish up.",
                )
            )
            return True
        await ask_cap(session, reached)
        return False

    # -- execution ---------------------------------------------------------------------------------

    def _start(self, session: Session, call_id: str) -> None:
        session.executing.add(call_id)
        task = asyncio.get_running_loop().create_task(self._execute(session, call_id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _execute(self, session: Session, call_id: str) -> None:
        try:
            reply = await session.keeper().call(
                "execute",
                wait=None,
                call_id=call_id,
                limits=self._settings.config.limits.to_wire(),
                undo_limits=self._settings.config.undo.to_wire(),
            )
            if stale := reply.get("stale"):
                await self._went_stale(session, call_id, [str(d) for d in stale])
            elif why := reply.get("unprotected"):
                await self._unprotected(session, call_id, str(why))
            else:
                await session.until(lambda: not _ready(session, call_id))
        except LinkLost:
            pass  # the keeper is taken up again and the log says how far the call came
        except Later as exc:
            session.hinder("call", exc.trouble)
            await asyncio.sleep(exc.seconds)
            session.unhinder("call")
        except OpError as exc:
            await self._not_executed(session, call_id, exc)
        except Exception as exc:
            await self._met(session, exc)
            await asyncio.sleep(_MET_S)  # whatever it was, the call does not begin again at once
        finally:
            session.executing.discard(call_id)
            session.touch()

    async def _not_executed(self, session: Session, call_id: str, exc: OpError) -> None:
        if exc.code == "no_space":
            session.hinder("call", trouble.of_code(exc.code, exc.message))
            await asyncio.sleep(_RETRY_SPACE)
            session.unhinder("call")
        elif exc.code in _BROKEN:
            session.trouble = trouble.of_code(exc.code, exc.message)
            await asyncio.sleep(1.0)
        elif exc.code in _LATER:
            await asyncio.sleep(0.05)  # the keeper recorded it, or the next step asks again
        elif _ready(session, call_id):
            # a keeper that cannot record this says so itself when it is next asked
            with contextlib.suppress(OpError, LinkLost):
                await session.append(t.ToolEnded(call_id=call_id, status="refused", preview=f"Not run: {exc.message}"))

    async def _went_stale(self, session: Session, call_id: str, difference: list[str]) -> None:
        call = session.state.calls.open.get(call_id)
        if call is None:
            return
        key = (session.sid, call_id)
        self._stale[key] = self._stale.get(key, 0) + 1
        if self._stale[key] > _STALE_LIMIT:
            self._stale.pop(key)
            await session.append(
                t.ToolEnded(
                    call_id=call_id,
                    status="refused",
                    preview=f"Not run: what it depends on keeps changing ({'; '.join(difference)})",
                )
            )
        elif call.approval_id:
            await session.append(t.ApprovalStale(approval_id=call.approval_id, call_id=call_id, difference=difference))
        else:
            known = session.track.calls.get(call_id)
            if known is not None and _ready(session, call_id):
                await session.append(
                    t.HarnessNote(
                        level="info",
                        text=f"call {call_id} is judged again: {'; '.join(difference)}",
                        component="supervisor",
                    )
                )
                await self._judge(session, call, known)

    async def _unprotected(self, session: Session, call_id: str, why: str) -> None:
        """The state before the call cannot be kept: whoever allowed it did not know that."""
        call = session.state.calls.open.get(call_id)
        known = session.track.calls.get(call_id)
        if call is None or known is None:
            return
        if call.approval_id:
            await self._went_stale(session, call_id, [f"the state before it cannot be kept: {why}"])
        else:
            await self._judge(session, call, known, why)

    # -- in doubt ----------------------------------------------------------------------------------

    async def _doubt(self, session: Session, call: Call, known: OpenCall) -> None:
        """A call that started and whose outcome nobody saw: settle it by its effect class, or ask."""
        action = await self.action_of(session, known)
        if action is None:
            await self._ask_doubt(session, call, known, "its action cannot be read")
            return
        if call.effect == tools.READ:
            await session.append(
                t.ToolResolved(
                    call_id=call.call_id,
                    resolution="confirmed_not_done",
                    evidence="reading has no effect; it runs again",
                )
            )
        elif call.effect == tools.REVERSIBLE:
            given = await self.input_of(session, known.proposed)
            resolution, evidence = await self._written(session, call.call_id, action, given)
            await session.append(t.ToolResolved(call_id=call.call_id, resolution=resolution, evidence=evidence))
        elif call.effect == tools.CONTAINED:
            await session.append(
                t.ToolResolved(
                    call_id=call.call_id,
                    resolution="unknown_told_model",
                    evidence="it ran inside the fence and was interrupted; the model is told",
                )
            )
        elif isinstance(action, PushAction):
            outcome = await session.do("asking the remote", _PROBE_S, lambda: push.probe(action))
            if outcome == "done":
                await session.append(
                    t.ToolResolved(
                        call_id=call.call_id,
                        resolution="confirmed_done",
                        evidence="the remote has exactly these commits",
                    )
                )
            elif outcome == "not_done":
                await session.append(
                    t.ToolResolved(
                        call_id=call.call_id,
                        resolution="confirmed_not_done",
                        evidence="the remote still has the old commits",
                    )
                )
            else:
                await self._ask_doubt(session, call, known, "the remote does not say")
        else:
            await self._ask_doubt(session, call, known, known.doubt.why if known.doubt else "it was interrupted")

    @staticmethod
    async def _written(session: Session, call_id: str, action: Action, given: object) -> tuple[str, str]:
        try:
            return await session.do(f"reading what call {call_id} left", _CARD_S, lambda: file_outcome(action, given))
        except WorkspaceError as exc:
            return "unknown_told_model", str(exc)

    @staticmethod
    async def _ask_doubt(session: Session, call: Call, known: OpenCall, why: str) -> None:
        action = await CallFlow.action_of(session, known)
        what = cards.title(action) if action is not None else known.proposed.tool
        await session.append(
            t.ApprovalRequested(
                approval_id=ids.approval_id(),
                kind=Request.IN_DOUBT,
                title=f"did this happen? {what}",
                options=["done", "failed", "unknown"],
                call_id=call.call_id,
                action_hash=call.action_hash,
                risk="high",
                detail={"why": why},
            )
        )

    # -- git ---------------------------------------------------------------------------------------

    async def _publish(self, session: Session) -> None:
        """Carry out what the agent committed; a failure is a note, the next call tries again."""
        try:
            await session.do("publishing its commits", _PUBLISH_S, lambda: publish(open_worktree(private_of(session))))
        except (WorkspaceError, OSError) as exc:
            if out_of_space(exc):
                session.track.ran_command = True
                raise Later(_RETRY_SPACE, Trouble("no_space", f"its commits cannot be published: {exc}")) from exc
            if why := await ailing(session):
                session.track.ran_command = True  # it is still to be published
                raise Later(HELD_S, held_for(why)) from exc
            text = f"the agent's commits could not be brought into the repository: {exc}"
            if text != session.last_note:
                session.last_note = text
                await session.append(t.HarnessNote(level="warning", text=text, component="workspace"), cls="B")

    async def settle(self, session: Session) -> None:
        """The last publish of a session that has ended."""
        with contextlib.suppress(WorkspaceError, OSError):
            await session.do("publishing its commits", _PUBLISH_S, lambda: publish(open_worktree(private_of(session))))


def _detail(built: Built, verdict: Verdict, changed: list[str]) -> dict[str, Any]:
    """What a request says beside its action. ``changed``: how the world differs from what was shown the last time."""
    detail: dict[str, Any] = {"effects": spelled(built.action), "rule": verdict.rule, "reason": verdict.reason}
    return detail | {"changed": changed} if changed else detail


def spelled(action: Action) -> list[str]:
    """Its effects as a record has them."""
    return [str(effect) for effect in action.effects]


def private_of(session: Session) -> Path:
    """The private git directory of a session."""
    return session.folder.git / "private"


async def ailing(session: Session) -> str:
    """What of the harness's own is broken under this session, in words; empty when nothing is."""
    try:
        return await session.do("seeing whether its ground stands", _CARD_S, lambda: health.ailing(private_of(session)))
    except WorkspaceError as exc:
        return str(exc)


def held_for(why: str) -> Trouble:
    """The trouble of a session that waits for its ground to be mended."""
    return Trouble("ground", why)


def _ready(session: Session, call_id: str) -> bool:
    """True while a call is allowed and has neither started nor ended, as far as our fold knows."""
    call = session.state.calls.open.get(call_id)
    return call is not None and call.stage in ("judged", "decided")


def outcome_of(call_id: str, decision: str, message: str) -> t.ToolEnded:
    """How a call ends that a human did not let run."""
    if decision == "answer":
        return t.ToolEnded(call_id=call_id, status="ok", preview=message)
    if decision == "stop":
        return t.ToolEnded(call_id=call_id, status="cancelled", preview="The human stopped the session.")
    return t.ToolEnded(
        call_id=call_id,
        status="denied",
        preview=f"The human denied this: {message}" if message else "The human denied this.",
    )


async def put_blob(session: Session, data: bytes, media: str) -> t.BlobRef:
    """Store a payload beside the log, durable before any record names it."""
    reply = await session.keeper().call("blob", data=base64.b64encode(data).decode("ascii"))
    return t.BlobRef(str(reply["sha"]), int(reply["bytes"]), media)
