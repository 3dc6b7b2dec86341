"""The queue: cards to look at, decisions bound to what was shown, deferral."""

from __future__ import annotations

import contextlib
import functools
import hashlib
from collections.abc import Mapping

import msgspec

from harness.budget.evidence import raised
from harness.domain.actions.action import from_wire
from harness.domain.calls.approval_kind import Request
from harness.domain.decision import PERMITS, Decision
from harness.domain.endpoints import ITEM_KINDS
from harness.domain.states import Desired
from harness.domain.text.fields import Wire
from harness.eventlog.framing import LogError
from harness.events import types as t
from harness.policy import grants
from harness.projections.state.session_state import OpenApproval
from harness.supervisor.base import ids
from harness.supervisor.base.errors import OpError
from harness.supervisor.calls.call_caps import in_words
from harness.supervisor.calls.consequences import Consequences, DecisionCase, DecisionRequest, above, cap_of
from harness.supervisor.calls.judging import Judging
from harness.supervisor.calls.on_record import action_of, input_of, stored_action
from harness.supervisor.calls.queue import cards, comparison, questions
from harness.supervisor.calls.work import ratchet
from harness.supervisor.endpoints.credentials import Credentials
from harness.supervisor.endpoints.endpoint_gates import Gates
from harness.supervisor.fleet.call_records import OpenCall
from harness.supervisor.fleet.fleet import Fleet
from harness.supervisor.fleet.session import Session
from harness.supervisor.money.budget_service import BudgetService
from harness.supervisor.money.cap_waits import CapWaits
from harness.views.replies import Changes
from harness.views.session_views import ApprovalView
from harness.workspace.git.errors import WorkspaceError

MAX_MESSAGE = 64 * 1024
MAX_PUSHED = 4 << 20
"""Bytes that all open requests together may have in one frame; what does not fit is named, and decided after the
others.
"""
MAX_PIECE = 1 << 20
"""Characters of a comparison that one reply carries."""
_CARD_S = 15.0


class Approvals:
    """Answers the queue's ops. Every decision is one batch of records, durable before the reply."""

    def __init__(
        self,
        fleet: Fleet,
        judging: Judging,
        credentials: Credentials,
        budget_service: BudgetService,
        gates: Gates,
        caps: CapWaits,
    ) -> None:
        self._fleet = fleet
        self._consequences = Consequences(judging, credentials, budget_service)
        self._purse = budget_service
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
        if asked.kind == Request.CAP and (said := self._caps.moved(asked)) is not None:
            known = msgspec.structs.replace(known, title=in_words(said), detail=known.detail | said.detail())
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
            d = msgspec.convert(dict(arguments), DecisionRequest)
        except msgspec.ValidationError as exc:
            raise OpError("bad_request", f"decide: {exc}") from exc
        session = self._fleet.approval(d.approval_id)
        async with session.lock:
            return await self._decide(session, d, by)

    async def _decide(self, session: Session, d: DecisionRequest, by: t.By) -> str:
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
        bodies = await self._consequences.of(DecisionCase(session, asked, d, record))
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

    async def _too_late(self, session: Session, d: DecisionRequest, by: t.By) -> str:
        """An answer to a request whose cap was raised meanwhile is taken for what it means: a higher cap still, a stop,
        or that it goes on.
        """
        cap = cap_of(session.track.passed[d.approval_id]).cap
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
        body = above(session, self._purse.raising(cap, d.value, decision), by)
        await session.append(body)
        await self._raise(body)
        return decision

    async def defer(self, approval_id: str, until: str) -> None:
        """Move a request to the end of the queue; it stays open."""
        session = self._fleet.approval(approval_id)
        await session.append(t.ApprovalDeferred(approval_id=approval_id, until=until), cls="B")


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
