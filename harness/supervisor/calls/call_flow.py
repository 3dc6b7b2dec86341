"""Every call on its way: judged, asked or denied, executed, settled. Level-triggered: `step` looks at the fold and
does what is due.

Nothing here is remembered that the log does not say, so a supervisor that dies anywhere goes on from the log.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from harness.domain import problems
from harness.domain.actions import access
from harness.domain.actions.access import Access
from harness.domain.calls.call_lifecycle import Call
from harness.domain.calls.call_states import CallEnd, CallStage
from harness.domain.decision import Decision, Ruling
from harness.events import types as t
from harness.supervisor.base.errors import FOR_NOW, Later, LinkLost, OpError
from harness.supervisor.base.settings import Settings
from harness.supervisor.calls import carrying_out, checkpoints, doubt, earlier_yes
from harness.supervisor.calls.answers import Answers
from harness.supervisor.calls.judging import Judging
from harness.supervisor.calls.on_record import action_of
from harness.supervisor.calls.queue.granting import Granting
from harness.supervisor.calls.repository import project_rules, publishing
from harness.supervisor.calls.session_folder import HELD_S, ailing, held_for
from harness.supervisor.calls.work import (
    before,
    contract,
    course,
    drafts,
    evaluation,
    gates,
    iterations,
    masking,
    ratchet,
)
from harness.supervisor.fleet.call_records import OpenCall
from harness.supervisor.fleet.session import Session
from harness.tools import registry

_STALE_LIMIT = 5
_RETRY_SPACE = 5.0
_MET_S = 1.0
_BROKEN = frozenset({"poisoned", "lost"})
_LATER = frozenset({"not_started", "conflict", "shutting_down", "cancelled", "cannot_start"})


class CallFlow:
    """Drives the open calls of any session."""

    def __init__(
        self,
        settings: Settings,
        judging: Judging,
        answers: Answers,
        granting: Granting,
        met: Callable[[Session, Exception], Awaitable[None]],
    ) -> None:
        """``met`` handles what a call ended in that is none of its own ends, as it handles that of the session's
        worker.
        """
        self._settings = settings
        self._judging = judging
        self._answers = answers
        self._granting = granting
        self._met = met
        self._tasks: set[asyncio.Task[None]] = set()

    # -- what is due -------------------------------------------------------------------------------

    async def step(self, session: Session) -> None:
        """Do everything that is due for this session's calls. Raises OpError, LinkLost, Later."""
        if session.blocked and (why := await ailing(session)):
            raise Later(HELD_S, held_for(why))  # nothing begins on ground that is known to be broken
        await masking.step(session)  # before a result is judged
        await ratchet.step(session)
        await before.step(session)
        await course.step(session)
        await drafts.step(session)
        await drafts.ask(session)
        await gates.step(session)
        await contract.step(session)
        await evaluation.step(session)
        await project_rules.step(session)
        await checkpoints.step(session, self._settings.config.checkpoints)
        while await self._one(session):
            pass
        if not session.doing_calls:
            await publishing.step(session)
            await iterations.step(session)

    async def at_end(self, session: Session) -> None:
        """The session has ended and its keeper is about to leave: what must be kept is. Raises LinkLost, OpError."""
        await checkpoints.at_end(session, self._settings.config.checkpoints)

    async def at_leave(self, session: Session) -> None:
        """The supervisor is about to leave: what changed is kept. Raises LinkLost, OpError."""
        await checkpoints.at_leave(session, self._settings.config.checkpoints)

    async def _one(self, session: Session) -> bool:
        reading = False
        for call in list(session.state.calls.open.values()):
            known = session.track.calls.get(call.call_id)
            if known is None:
                return False
            at_work = call.call_id in session.running.executing or call.stage == CallStage.STARTED
            if (at_work or reading) and not _only_reads(known):
                return False
            if at_work:
                reading = True  # what it meets is what it was judged for, whatever else reads beside it
                continue
            match call.stage:
                case CallStage.ASKED:
                    # what was shown must stay as it was shown: nothing else of the session runs meanwhile
                    return False
                case CallStage.IN_DOUBT:
                    if call.call_id in session.track.doubt_asked:
                        continue
                    await doubt.settle(session, call, known)
                    return True
                case CallStage.DECIDED:
                    if not call.allowed_by:
                        await self._refused_by_human(session, call, known)
                    elif why := await self._now_denied(session, known):
                        await session.append(
                            t.ApprovalStale(approval_id=call.approval_id, call_id=call.call_id, difference=[why])
                        )
                    else:
                        self._start(session, call.call_id)
                    return True
                case CallStage.JUDGED if call.verdict == Ruling.ALLOW and await self._still_allowed(session, known):
                    self._start(session, call.call_id)
                    return True
                case CallStage.JUDGED if call.verdict == Ruling.DENY:
                    await session.append(
                        t.ToolEnded(call_id=call.call_id, status=CallEnd.DENIED, preview=self._denial(known))
                    )
                    return True
            return await self._judging.judge(session, call, known)
        return False

    async def _still_allowed(self, session: Session, known: OpenCall) -> bool:
        """False when the policy is another one than the call was allowed by, or the rule that allowed it was taken
        back: then it is judged anew; a human's edit falls only to a denial.
        """
        policy = self._settings.policy
        if known.judged is not None and not await self._granting.stands(known.judged.rule):
            return False
        if known.judged is None or known.judged.policy == policy.hash:
            return True
        return earlier_yes.stands(known.judged, await action_of(session, known), policy)

    async def _now_denied(self, session: Session, known: OpenCall) -> str:
        """Why what was allowed by a human may not start any more: the policy in force now denies it, or the rule that
        decided it was taken back; empty when nothing speaks against it.
        """
        if known.decided is not None and not await self._granting.stands(known.decided.by.client):
            return "the rule that allowed this was taken back, or has expired"
        policy = self._settings.policy
        if known.judged is None or known.judged.policy == policy.hash:
            return ""
        return earlier_yes.denial(known.judged, await action_of(session, known), policy)

    @staticmethod
    def _denial(known: OpenCall) -> str:
        j = known.judged
        return f"Denied by policy ({j.rule}): {j.reason}" if j is not None else "Denied by policy."

    async def _refused_by_human(self, session: Session, call: Call, known: OpenCall) -> None:
        d = known.decided
        await session.append(outcome_of(call.call_id, d.decision if d else Decision.DENY, d.message if d else ""))

    # -- execution ---------------------------------------------------------------------------------

    def _start(self, session: Session, call_id: str) -> None:
        session.running.executing.add(call_id)
        task = asyncio.get_running_loop().create_task(self._execute(session, call_id))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _execute(self, session: Session, call_id: str) -> None:
        try:
            call = session.state.calls.open.get(call_id)
            if call is not None and registry.recorded(call.tool):
                await self._answers.answer(session, call_id)
                return
            await checkpoints.before_leaving(session, call_id, self._settings.config.checkpoints)
            begun = await carrying_out.begin(session, self._settings.config, call_id)
            if begun.stale:
                await self._went_stale(session, call_id, list(begun.stale))
            elif begun.unprotected:
                await self._unprotected(session, call_id, begun.unprotected)
            else:
                await session.until(lambda: not _ready(session, call_id))
        except LinkLost:
            pass  # the keeper is taken up again and the log says how far the call came
        except Later as exc:
            session.block("call", exc.trouble)
            await asyncio.sleep(exc.seconds)
            session.unblock("call")
        except OpError as exc:
            await self._not_executed(session, call_id, exc)
        except Exception as exc:
            await self._met(session, exc)
            await asyncio.sleep(_MET_S)  # whatever it was, the call does not begin again at once
        finally:
            session.running.executing.discard(call_id)
            session.touch()

    async def _not_executed(self, session: Session, call_id: str, exc: OpError) -> None:
        if exc.code in FOR_NOW:
            session.block("call", problems.of_code(exc.code, exc.message))
            await asyncio.sleep(_RETRY_SPACE)
            session.unblock("call")
        elif exc.code in _BROKEN:
            session.troubles.fail("call", problems.of_code(exc.code, exc.message))
            await asyncio.sleep(1.0)
        elif exc.code in _LATER:
            await asyncio.sleep(0.05)  # the keeper recorded it, or the next step asks again
        elif _ready(session, call_id):
            # a keeper that cannot record this says so itself when it is next asked
            with contextlib.suppress(OpError, LinkLost):
                await session.append(
                    t.ToolEnded(call_id=call_id, status=CallEnd.REFUSED, preview=f"Not run: {exc.message}")
                )

    async def _went_stale(self, session: Session, call_id: str, difference: list[str]) -> None:
        call = session.state.calls.open.get(call_id)
        if call is None:
            return
        stale = session.running.stale
        stale[call_id] = stale.get(call_id, 0) + 1
        if stale[call_id] > _STALE_LIMIT:
            stale.pop(call_id)
            await session.append(
                t.ToolEnded(
                    call_id=call_id,
                    status=CallEnd.REFUSED,
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
                await self._judging.judge(session, call, known)

    async def _unprotected(self, session: Session, call_id: str, why: str) -> None:
        """The state before the call cannot be kept: whoever allowed it did not know that."""
        call = session.state.calls.open.get(call_id)
        known = session.track.calls.get(call_id)
        if call is None or known is None:
            return
        if call.approval_id:
            await self._went_stale(session, call_id, [f"the state before it cannot be kept: {why}"])
        else:
            await self._judging.judge(session, call, known, why)


def _only_reads(known: OpenCall) -> bool:
    """True for a call that changes nothing and stays inside the sandbox; its keeper decides whether it may run beside
    others.
    """
    asked = known.proposed
    if asked.only_reads:
        return True
    inside = asked.input is not None and access.asked(asked.input) == Access.SANDBOX
    return inside and not registry.may_change_files(asked.tool)


def _ready(session: Session, call_id: str) -> bool:
    """True while a call is allowed and has neither started nor ended, as far as our fold knows."""
    call = session.state.calls.open.get(call_id)
    return call is not None and call.stage in (CallStage.JUDGED, CallStage.DECIDED)


def outcome_of(call_id: str, decision: str, message: str) -> t.ToolEnded:
    """How a call ends that a human did not let run."""
    if decision == Decision.ANSWER:
        return t.ToolEnded(call_id=call_id, status=CallEnd.OK, preview=message)
    if decision == Decision.STOP:
        return t.ToolEnded(call_id=call_id, status=CallEnd.CANCELLED, preview="The human stopped the session.")
    return t.ToolEnded(
        call_id=call_id,
        status=CallEnd.DENIED,
        preview=f"The human denied this: {message}" if message else "The human denied this.",
    )
