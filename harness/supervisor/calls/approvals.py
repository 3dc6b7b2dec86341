"""The queue: cards to look at, decisions bound to what was shown, deferral."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from harness.budget.evidence import raised
from harness.budget.ledger_types import Raised
from harness.events import tool_input
from harness.events import types as t
from harness.events.action import Wire, from_wire
from harness.events.cap_request import CapRequest
from harness.events.decision import PERMITS, Decision, Ruling
from harness.events.endpoints import ITEM_KINDS
from harness.events.framing import LogError
from harness.events.ratchet import ALLOW, KEEP
from harness.events.replies import Changes
from harness.events.request import Request
from harness.events.session_state import OpenApproval
from harness.events.states import Desired
from harness.events.views import ApprovalView
from harness.policy import grants
from harness.policy.judge import Verdict
from harness.policy.rules import RISKS
from harness.supervisor import ids
from harness.supervisor.calls import cards, comparison, drafts, gates, questions, ratchet
from harness.supervisor.calls.call_flow import outcome_of
from harness.supervisor.calls.judging import Judging
from harness.supervisor.calls.on_record import action_of, input_of, stored_action
from harness.supervisor.endpoints.credentials import Credentials, given_credential
from harness.supervisor.endpoints.endpoint_gates import Gates
from harness.supervisor.errors import OpError
from harness.supervisor.fleet.call_records import OpenCall
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.fleet.session import Session
from harness.supervisor.money.cap_waits import CapWaits, waits_at
from harness.supervisor.money.purse import Purse
from harness.workspace.errors import WorkspaceError

MAX_MESSAGE = 64 * 1024
MAX_PUSHED = 4 << 20
"""Bytes that all open requests together may have in one frame; what does not fit is named, and decided after the
others.
"""
MAX_PIECE = 1 << 20
"""Characters of a comparison that one reply carries."""
_CARD_S = 15.0
_RESOLUTIONS = {"done": "confirmed_done", "failed": "failed", "unknown": "unknown_told_model"}


class DecisionWish(msgspec.Struct, frozen=True, kw_only=True):
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
class _Case:
    """One decision on one open request."""

    session: Session
    asked: OpenApproval
    decision: DecisionWish
    record: t.ApprovalDecided


class Approvals:
    """Answers the queue's ops. Every decision is one batch of records, durable before the reply."""

    def __init__(
        self, fleet: Fleet, judging: Judging, credentials: Credentials, purse: Purse, gates: Gates, caps: CapWaits
    ) -> None:
        self._fleet = fleet
        self._judging = judging
        self._credentials = credentials
        self._purse = purse
        self._gates = gates
        self._caps = caps
        self._sizes: dict[str, int] = {}

    # -- looking -----------------------------------------------------------------------------------

    async def view(self, session: Session, approval_id: str) -> ApprovalView:
        """The card of one open request; computed once, then kept while it is open. Raises OpError ``not_open``."""
        asked = session.state.approvals.get(approval_id) or session.track.passed.get(approval_id)
        if asked is None:
            raise OpError("not_open", f"request {approval_id!r} is not open: it was decided, withdrawn or never made")
        known = session.shown.cards.get(approval_id)
        if known is None:
            known = await self._make(session, asked)
            session.shown.cards[approval_id] = known
        return msgspec.structs.replace(known, deferred=asked.deferred, session_name=session.name)

    async def _make(self, session: Session, asked: OpenApproval) -> ApprovalView:
        call = session.track.calls.get(asked.call_id)
        action: Wire | None = None
        shown = ""
        if asked.kind == Request.PROTECTED:
            try:
                shown = comparison.on_card(await self._protected(session))
            except (WorkspaceError, OSError, ValueError) as exc:
                shown = cards.unread(exc)
        if call is not None and asked.kind != Request.QUESTION:
            try:
                action = await stored_action(session, call)
                shown = session.shown.diffs.pop(asked.approval_id, "")
                if action is not None and not shown and asked.kind == Request.TOOL:
                    given = await input_of(session, call.proposed)
                    whole = given if isinstance(given, dict) else {}
                    shown = await session.look(
                        "reading what it would change", _CARD_S, functools.partial(cards.diff, from_wire(action), whole)
                    )
            except (LogError, WorkspaceError, OSError, ValueError) as exc:
                shown = cards.unread(exc)
        view = cards.view(session.sid, session.state, asked, call, action, shown)
        if asked.kind != Request.TOOL or action is None:
            return view
        try:
            alike, same = grants.likeness(from_wire(action), view.rule, view.risk)
        except ValueError:
            return view  # what cannot be read is like nothing else
        return msgspec.structs.replace(view, alike=alike, same=same)

    @staticmethod
    async def _protected(session: Session) -> str:
        return await session.look("reading what it changed", _CARD_S, lambda: ratchet.changes(session))

    async def all(self) -> list[ApprovalView]:
        """Every open request, oldest first, deferred ones last; those that would not fit into a frame without what they
        would do.
        """
        found = []
        for session in self._fleet:
            if session.finished or session.foreign or session.damaged or session.state.desired == Desired.STOPPED:
                continue  # a decision could not be put on record
            session.shown.only(session.state.approvals.keys())
            for approval_id in list(session.state.approvals):
                if approval_id not in session.state.approvals:
                    continue  # decided while an earlier card was made
                found.append(await self.view(session, approval_id))
        return self._fitting(sorted(found, key=lambda a: (a.deferred is not None, a.ts, a.sid, a.seq)))

    def _fitting(self, views: list[ApprovalView]) -> list[ApprovalView]:
        known = self._sizes
        self._sizes = {}
        room = MAX_PUSHED
        for index, view in enumerate(views):
            size = known.get(view.approval_id) or len(msgspec.json.encode(view))
            self._sizes[view.approval_id] = size
            room -= size
            if room < 0:
                room += size
                views[index] = _named_only(view, size)
        return views

    async def changes(self, session: Session, approval_id: str, offset: int) -> Changes:
        """A piece of the whole comparison behind a card, as the file is now.

        Raises OpError.
        """
        asked = session.state.approvals.get(approval_id)
        call = session.track.calls.get(asked.call_id) if asked is not None else None
        protected = asked is not None and asked.kind == Request.PROTECTED
        if call is None and not protected:
            raise OpError("not_open", f"request {approval_id!r} is not open, or changes no file")
        try:
            whole = await (self._protected(session) if call is None else self._would_change(session, call))
        except (LogError, WorkspaceError, OSError, ValueError) as exc:
            raise OpError("unreadable", f"what it would change cannot be read: {exc}") from exc
        digest = hashlib.sha256(whole.encode()).hexdigest()
        piece = whole[max(offset, 0) :][:MAX_PIECE]
        return Changes(text=piece, offset=offset, characters=len(whole), sha256=digest)

    async def _would_change(self, session: Session, call: OpenCall) -> str:
        action = await action_of(session, call)
        given = await input_of(session, call.proposed)
        if action is None:
            return ""
        look = functools.partial(cards.whole_diff, action, given if isinstance(given, dict) else {})
        return await session.look("reading what it would change", _CARD_S, look)

    # -- deciding ----------------------------------------------------------------------------------

    async def decide(self, arguments: Mapping[str, object], by: t.By) -> str:
        """Decide one request; returns the decision's id once it is durable.

        Raises OpError ``not_open``, ``stale`` (another action than the one shown), ``bad_option``, ``bad_edit``,
        ``bad_value``.
        """
        try:
            d = msgspec.convert(dict(arguments), DecisionWish)
        except msgspec.ValidationError as exc:
            raise OpError("bad_request", f"decide: {exc}") from exc
        session = self._fleet.approval(d.approval_id)
        async with session.lock:
            return await self._decide(session, d, by)

    async def _decide(self, session: Session, d: DecisionWish, by: t.By) -> str:
        asked = session.state.approvals.get(d.approval_id)
        if asked is None and d.approval_id in session.track.passed:
            return await self._too_late(session, d, by)
        if asked is None:
            raise OpError("not_open", f"request {d.approval_id} was decided meanwhile")
        if d.decision not in asked.options:
            raise OpError(
                "bad_option",
                f"{d.decision!r} is not an answer to this request",
                f"choose one of: {', '.join(asked.options)}",
            )
        if asked.action_hash and d.action_hash != asked.action_hash:
            raise OpError("stale", "what you decided on is not what would run now", "look at the request again")
        if len(d.message) > MAX_MESSAGE:
            raise OpError("bad_request", f"the message is longer than {MAX_MESSAGE} characters")
        if asked.kind == Request.QUESTION and d.decision == Decision.ANSWER:
            d = msgspec.structs.replace(d, message=questions.words_of(asked, d.message, d.value))
        record = t.ApprovalDecided(
            approval_id=d.approval_id,
            decision_id=ids.decision_id(),
            decision=d.decision,
            call_id=asked.call_id,
            action_hash=asked.action_hash,
            message=d.message,
            edited=d.edited,
            value=d.value,
            cap=str(asked.detail.get("cap", "")),
            by=by,
            shown_hash=d.shown_hash,
        )
        bodies = await self._consequences(_Case(session, asked, d, record))
        # before it is on record, or another session would ask again in between
        if asked.kind in ITEM_KINDS and d.decision == Decision.RETRY:
            self._gates.answered(str(asked.detail.get("endpoint", "")))
        try:
            # a decision may be a wish of its own (stop, retry), and a stop comes before every other
            async with session.wish:
                if session.state.desired == Desired.STOPPED:
                    raise OpError("ended", f"{session.name} was stopped meanwhile; nothing of it is decided any more")
                await session.append(record, *bodies)
        except OpError as exc:
            if exc.code == "refused" and d.approval_id not in session.state.approvals:
                raise OpError("not_open", f"request {d.approval_id} was decided meanwhile") from exc
            raise
        session.shown.cards.pop(d.approval_id, None)
        for body in bodies:
            await self._raise(body)
        return record.decision_id

    async def _raise(self, body: t.Body) -> None:
        """Let the ledger follow a raise that is on record; what it cannot write now follows by itself."""
        if isinstance(body, t.CapsRaised) and body.cap:
            with contextlib.suppress(OpError):
                await self._purse.follow(raised(body))
            self._caps.poke()

    async def _too_late(self, session: Session, d: DecisionWish, by: t.By) -> str:
        """An answer to a request whose cap was raised meanwhile is taken for what it means: a higher cap still, a stop,
        or that it goes on.
        """
        cap = _cap_of(session.track.passed[d.approval_id]).cap
        decision = ids.decision_id()
        if d.decision == Decision.STOP:
            await session.append(
                t.SessionDesired(state=Desired.STOPPED, reason=d.message or f"you stopped it at: {cap}", by=by)
            )
            return decision
        if d.decision != Decision.RAISE or d.value is None:
            raise OpError(
                "not_open",
                f"{cap} was raised or a new day began meanwhile, so {session.name} goes on",
                f"stop it, or look at it: watchfloor show {session.sid}",
            )
        now = self._purse.standing(cap)
        if now.limit is None or d.value <= now.limit:
            return now.decision  # that raise says all that this one means
        body = self._above(session, self._purse.raising(cap, d.value, decision), by)
        await session.append(body)
        await self._raise(body)
        return decision

    @staticmethod
    def _above(session: Session, r: Raised, by: t.By) -> t.CapsRaised:
        return t.CapsRaised(
            caps=session.state.caps, by=by, cap=r.cap, limit=r.limit, base=r.base, day=r.day, decision_id=r.decision
        )

    async def _consequences(self, case: _Case) -> list[t.Body]:
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
            case Request.RESTART:
                return [t.SessionDesired(state="running", reason="retry", by=case.record.by)]
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

    async def _tool(self, case: _Case) -> list[t.Body]:
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
        if problem := tool_input.validate(known.proposed.tool, d.edited):
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

    async def _cap(self, case: _Case) -> list[t.Body]:
        d = case.decision
        asked = case.asked
        session = case.session
        said = _cap_of(asked)
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
        return [self._above(session, self._purse.raising(cap, d.value, case.record.decision_id), by)]

    async def defer(self, approval_id: str, until: str) -> None:
        """Move a request to the end of the queue; it stays open."""
        session = self._fleet.approval(approval_id)
        await session.append(t.ApprovalDeferred(approval_id=approval_id, until=until), cls="B")


def _no_riskier(shown: str, edited: Verdict) -> None:
    """Raise OpError ``bad_edit`` when an edit would let something of high or critical risk run on a card of less."""
    if edited.risk in ("high", "critical") and RISKS.index(edited.risk) > RISKS.index(shown):
        raise OpError(
            "bad_edit",
            f"edited like that it is of {edited.risk} risk ({edited.reason}), and the card that you saw is of {shown}"
            " risk; nothing was approved",
            "deny it and say what the agent shall ask for instead: that gets a card of its own",
        )


def _cap_of(asked: OpenApproval) -> CapRequest:
    """What a request about a cap says. Raises OpError."""
    said = CapRequest.of(asked.detail)
    if said is None:
        raise OpError("bad_option", f"{asked.detail.get('cap', '')} is not a cap of the day or the fleet")
    return said


def _named_only(view: ApprovalView, size: int) -> ApprovalView:
    """A request that is too large to be sent along with the others: named, and not to be approved before all of it can
    be shown.
    """
    why = f"{size:,} bytes: too large to be shown beside the other open requests; decide those first, or deny this one"
    options = [o for o in view.options if o not in PERMITS]
    return msgspec.structs.replace(
        view,
        title=view.title[:200],
        options=options,
        action=None,
        effects=[],
        claim="",
        diff="",
        reason=view.reason[:200],
        detail={"not shown": why},
    )
