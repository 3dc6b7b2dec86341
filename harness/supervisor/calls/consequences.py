"""What an answer to a request does: the records that follow a decision, in one batch with it."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from harness.budget.ledger_types import Raised
from harness.domain.calls.approval_kind import Request
from harness.domain.calls.cap_request import CapRequest
from harness.domain.decision import Decision, Ruling
from harness.domain.states import Desired
from harness.events import types as t
from harness.policy.decide import Verdict
from harness.policy.policy_file import RISKS
from harness.projections.state.protected_files import ALLOW, KEEP
from harness.projections.state.session_state import OpenApproval
from harness.supervisor.base.errors import OpError
from harness.supervisor.calls.call_flow import outcome_of
from harness.supervisor.calls.judging import Judging
from harness.supervisor.calls.on_record import action_of
from harness.supervisor.calls.queue import questions
from harness.supervisor.calls.work import drafts, gates
from harness.supervisor.endpoints.credentials import Credentials, given_credential
from harness.supervisor.fleet.call_records import OpenCall
from harness.supervisor.fleet.session import Session
from harness.supervisor.money.budget_service import BudgetService
from harness.supervisor.money.cap_waits import waits_at
from harness.tools import validation
from harness.workspace.git.errors import WorkspaceError

_RESOLUTIONS = {"done": "confirmed_done", "failed": "failed", "unknown": "unknown_told_model"}


class DecisionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """Arguments of ``decide``, as the protocol has them."""

    approval_id: str
    decision: str
    action_hash: str = ""
    message: str = ""
    edited: dict[str, object] | None = None
    value: int | None = None
    shown_hash: str = ""
    credential: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class DecisionCase:
    """One decision on one open request."""

    session: Session
    asked: OpenApproval
    decision: DecisionRequest
    record: t.ApprovalDecided


class Consequences:
    """By the kind of the request."""

    def __init__(self, judging: Judging, credentials: Credentials, budget_service: BudgetService) -> None:
        self._judging = judging
        self._credentials = credentials
        self._purse = budget_service

    async def of(self, case: DecisionCase) -> list[t.Body]:
        """The records that carry it out. Raises OpError ``bad_edit``, ``bad_request``, ``bad_value``, ``stale``."""
        d = case.decision
        asked = case.asked
        if d.decision == Decision.STOP:
            return [
                t.SessionDesired(
                    state=Desired.STOPPED,
                    reason=d.message or f"you stopped it at: {asked.title}"[:300],
                    by=case.record.by,
                )
            ]
        match asked.kind:
            case Request.TOOL:
                return await self._tool(case)
            case Request.QUESTION if asked.call_id:
                return [questions.outcome(asked.call_id, d.decision, d.message)]
            case Request.CAP:
                return await self._cap(case)
            case Request.AUTH | Request.ENDPOINT:
                intent = case.session.state.intent
                key = given_credential(d.credential)
                added = self._credentials.add(key) if key is not None else ""
                if not added or (intent is not None and added == intent.credential):
                    self._credentials.forgive()
                else:
                    self._credentials.forgive(added)
                return []
            case Request.RESTART | Request.HISTORY | Request.BILL:
                by = case.record.by
                first: list[t.Body] = []
                if d.decision == Decision.FRESH:
                    first = [t.ContextWanted(fresh=True, by=by)]
                elif d.decision == Decision.BELIEVE:
                    first = [t.BillsBelieved(by=by)]
                return [*first, t.SessionDesired(state=Desired.RUNNING, reason=d.decision, by=by)]
            case Request.IN_DOUBT:
                return [
                    t.ToolResolved(
                        call_id=asked.call_id,
                        resolution=_RESOLUTIONS[d.decision],
                        evidence=d.message or "the human's word",
                        by=case.record.by,
                    )
                ]
            case Request.PLAN:
                return await drafts.decided(case.session, asked, d.decision, d.message, case.record.by)
            case Request.GATE:
                return gates.decided(asked, d.decision, d.message, case.record.by)
            case Request.PROTECTED:
                return [
                    t.RatchetAnswered(
                        violations=list(case.session.state.ratchet.unanswered),
                        answer=ALLOW if d.decision == Decision.ALLOW else KEEP,
                        message=d.message,
                        by=case.record.by,
                    )
                ]
        if d.decision == Decision.ANSWER:
            if not d.message.strip():
                raise OpError("bad_request", "an answer needs a text: the agent reads it at its next turn")
            return [t.UserMessage(text=d.message, origin="human", by=case.record.by)]
        if d.decision == Decision.DONE:
            return [questions.taken(case.session.state, asked)]
        return []

    async def _tool(self, case: DecisionCase) -> list[t.Body]:
        d = case.decision
        asked = case.asked
        session = case.session
        if d.decision == Decision.ALLOW:
            return []
        if d.decision != Decision.ALLOW_EDITED:
            if d.decision == Decision.ANSWER and not d.message.strip():
                raise OpError("bad_request", "an answer needs a text: it becomes the result of the call")
            return [outcome_of(asked.call_id, d.decision, d.message)]
        known = session.track.calls.get(asked.call_id)
        if known is None or d.edited is None:
            raise OpError(
                "bad_edit", "an edited approval needs the whole edited input", "give the tool's input as a JSON object"
            )
        if problem := validation.validate(known.proposed.tool, d.edited):
            raise OpError("bad_edit", problem)
        try:
            built = await self._judging.build(
                session, msgspec.structs.replace(known.proposed, input_blob=None, input=d.edited), d.edited
            )
        except WorkspaceError as exc:
            raise OpError("bad_edit", f"the edited action cannot be examined: {exc}") from exc
        # after the edited action was bound to the world: nothing can change in between
        await self._still_as_shown(session, asked, known)
        if built.verdict.verdict == Ruling.DENY:
            raise OpError("bad_edit", f"policy denies the edited action ({built.verdict.rule}): {built.verdict.reason}")
        _no_riskier(asked.risk, built.verdict)
        return [await self._judging.judged_by_human(session, asked.call_id, built)]

    async def _still_as_shown(self, session: Session, asked: OpenApproval, known: OpenCall) -> None:
        """Raise OpError ``stale``, and ask anew with the difference, when the world is not the one in which the person
        edited.
        """
        action = await action_of(session, known)
        if action is None:
            raise OpError("stale", "the action that was shown cannot be read any more", "look at the request again")
        if changed := await self._judging.changed_since_shown(session, asked.call_id, action):
            await session.append(
                t.ApprovalStale(approval_id=asked.approval_id, call_id=asked.call_id, difference=changed)
            )
            raise OpError(
                "stale", f"what it would run on has changed: {'; '.join(changed)[:500]}", "look at the request again"
            )

    async def _cap(self, case: DecisionCase) -> list[t.Body]:
        d = case.decision
        asked = case.asked
        session = case.session
        said = cap_of(asked)
        cap = said.cap
        by = case.record.by
        if d.decision == Decision.FINISH:
            return [await self._purse.finish(session, cap)]
        if d.value is None or d.value <= said.limit:
            raise OpError(
                "bad_value",
                f"the new cap has to be above {cap.words(said.limit)}",
                f"say how much: watchfloor approve {asked.approval_id} --raise-to X",
            )
        if cap.of_session:
            return [t.CapsRaised(caps=msgspec.structs.replace(session.state.caps, **{cap.field: d.value}), by=by)]
        now = self._purse.standing(cap)
        waited = waits_at(asked)
        if now.limit is None or d.value <= now.limit or (waited is not None and cap.of_day and now.day > waited.day):
            # raised meanwhile, or the day is over: it goes on as it is
            return [t.CapsRaised(caps=session.state.caps, by=by)]
        return [above(session, self._purse.raising(cap, d.value, case.record.decision_id), by)]


def above(session: Session, r: Raised, by: t.By) -> t.CapsRaised:
    """The record of a cap of the day or the fleet that was raised."""
    return t.CapsRaised(
        caps=session.state.caps, by=by, cap=r.cap, limit=r.limit, base=r.base, day=r.day, decision_id=r.decision
    )


def _no_riskier(shown: str, edited: Verdict) -> None:
    """Raise OpError ``bad_edit`` when an edit would let something of high or critical risk run on a card of less."""
    if edited.risk in ("high", "critical") and RISKS.index(edited.risk) > RISKS.index(shown):
        raise OpError(
            "bad_edit",
            f"edited like that it is of {edited.risk} risk ({edited.reason}), and the card that you saw is of {shown}"
            " risk; nothing was approved",
            "deny it and say what the agent shall ask for instead: that gets a card of its own",
        )


def cap_of(asked: OpenApproval) -> CapRequest:
    """What a request about a cap says. Raises OpError."""
    said = CapRequest.of(asked.detail)
    if said is None:
        raise OpError("bad_option", f"{asked.detail.get('cap', '')} is not a cap of the day or the fleet")
    return said
