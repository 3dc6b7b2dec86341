"""What a person may ask of rules that let requests through: look, try, make, take back."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from harness.domain.actions.action import Action
from harness.domain.calls.approval_kind import Request
from harness.domain.text.formatting import span
from harness.eventlog.framing import LogError
from harness.events import types as t
from harness.policy import granted, grants
from harness.policy.decide import Verdict
from harness.policy.grant_records import Made, Revoked, Scope, Source
from harness.policy.granted import Case, RuleStanding
from harness.policy.grants import NoGrant, NoRule, Wider
from harness.projections.state.session_state import OpenApproval
from harness.supervisor.base import ids
from harness.supervisor.base.errors import LinkLost, OpError
from harness.supervisor.calls.on_record import action_of
from harness.supervisor.calls.queue.granting import now_utc, verdict_of
from harness.supervisor.fleet.session import Session
from harness.supervisor.serving.parts import Parts, number_of, text_of
from harness.supervisor.serving.past import Past
from harness.supervisor.serving.server import Connection, Fields, Handler
from harness.views.grant_views import (
    Granted,
    GrantList,
    GrantPreview,
    GrantPreviewed,
    GrantView,
    PastRequest,
    RevokedView,
    UseView,
)
from harness.views.replies import DONE, Done

LEAST_S = 60
MOST_S = 30 * 86_400
DEFAULT_S = 86_400
DEFAULT_COUNT = 20
_SHOWN = 100
"""Past requests that a preview names."""


@dataclass(frozen=True, slots=True)
class _Wish:
    """A rule that a person thinks of, made from one open request."""

    session: Session
    asked: OpenApproval
    action: Action
    verdict: Verdict
    scope: Scope
    of: str
    wider: Wider

    @property
    def critical(self) -> bool:
        return grants.critical(self.action, self.verdict.risk)


class GrantOps:
    """The table of what is asked about rules."""

    def __init__(self, parts: Parts) -> None:
        self._p = parts
        self._past = Past()

    def table(self) -> dict[str, Handler]:
        """Operations by their name on the wire."""
        return {"grants": self.all, "grant_preview": self.preview, "grant": self.make, "revoke": self.revoke}

    # -- looking -----------------------------------------------------------------------------------

    async def all(self, c: Connection, m: Fields) -> GrantList:
        """Every rule that stands, or with ``ended`` also those that do not any more, the oldest first."""
        now = now_utc()
        known = (await self._p.granting.book.read()).by_id.values()
        return GrantList(grants=[view_of(s, now) for s in known if m.get("ended") is True or not s.ends(now)])

    async def preview(self, c: Connection, m: Fields) -> GrantPreviewed:
        """What a rule would say and would have covered, before anybody makes it."""
        wish = await self._wish(m)
        words = grants.words(wish.action, wish.wider)
        try:
            made = self._made(wish, m, c.by, typed=True)
        except NoGrant as exc:
            problem = str(exc)
            said = GrantPreview(words=words, critical=wish.critical, past=[], looked_at=0, problem=problem)
            return GrantPreviewed(preview=said)
        past: list[PastRequest] = []
        looked_at = 0
        async for session, asked in self._past.everywhere(list(self._p.fleet)):
            repository = ""
            if made.scope is Scope.REPOSITORY and asked:
                repository = await self._p.granting.repository(session)
            for one in asked:
                looked_at += 1
                case = Case(session.sid, repository, one.call_id, one.action, one.verdict)
                if granted.fits(made, case):
                    state = one.decision or "open"
                    past.append(
                        PastRequest(
                            sid=session.sid,
                            session=session.name,
                            approval_id=one.approval_id,
                            title=one.title,
                            ts=one.ts,
                            decision=state,
                        )
                    )
        past.sort(key=lambda request: request.ts, reverse=True)
        said = GrantPreview(words=words, critical=wish.critical, past=past[:_SHOWN], looked_at=looked_at)
        return GrantPreviewed(preview=said)

    # -- changing ----------------------------------------------------------------------------------

    async def make(self, c: Connection, m: Fields) -> Granted:
        """Make a rule, then let it decide what is open and covered by it."""
        wish = await self._wish(m)
        session = wish.session
        typed = text_of(m, "typed")
        if wish.critical and typed != session.name:
            raise OpError(
                "untyped",
                f"this is critical: no rule covers it unless the name of its session is typed, {session.name}",
                "type that name, or decide each of these alone",
            )
        try:
            made = self._made(wish, m, c.by, typed=wish.critical)
            await self._p.granting.book.change(lambda known: granted.make(known, made, now_utc()))
        except NoGrant as exc:
            raise OpError("bad_grant", str(exc)) from exc
        with contextlib.suppress(OpError, LinkLost):  # the log of rules has it already
            await session.append(
                t.GrantMade(
                    grant=made.grant,
                    approval_id=wish.asked.approval_id,
                    scope=str(made.scope),
                    words=made.words,
                    count=made.count,
                    expires=made.expires,
                    typed=made.typed,
                    by=c.by,
                ),
                cls="B",
            )
        decided = await self._p.granting.settle(self._p.fleet, made)
        return Granted(grant=view_of(RuleStanding(made), made.ts), decided=decided)

    async def revoke(self, c: Connection, m: Fields) -> Done:
        """Take a rule back; what it allowed and has not started is asked about again."""
        revoked = Revoked(grant=text_of(m, "grant"), by=c.by, ts=now_utc(), why=text_of(m, "why"))
        try:
            await self._p.granting.book.change(lambda known: granted.revoke(known, revoked, now_utc()))
        except NoGrant as exc:
            raise OpError("not_found" if isinstance(exc, NoRule) else "bad_grant", str(exc)) from exc
        for session in self._p.fleet:
            session.wake()
        return DONE

    # -- what is meant -----------------------------------------------------------------------------

    async def _wish(self, m: Fields) -> _Wish:
        """Raises OpError."""
        approval_id = text_of(m, "approval_id")
        session = self._p.fleet.approval(approval_id)
        asked = session.state.approvals.get(approval_id)
        known = session.track.calls.get(asked.call_id) if asked is not None else None
        if asked is None or asked.kind != Request.TOOL or known is None:
            raise OpError("bad_grant", "only a call that asks to leave the sandbox can get a rule")
        if text_of(m, "action_hash") != asked.action_hash:
            raise OpError("stale", "what you made a rule of is not what would run now", "look at the request again")
        try:
            action = await action_of(session, known)
        except (LogError, OSError, ValueError) as exc:
            raise OpError("unreadable", f"what was asked cannot be read: {exc}") from exc
        if action is None:
            raise OpError("unreadable", "what was asked cannot be read any more")
        named = text_of(m, "scope") or str(Scope.SESSION)
        if named not in list(Scope):
            raise OpError("bad_request", f"a rule is a session's, a repository's or the fleet's, not {named[:40]!r}'s")
        scope = Scope(named)
        of = session.sid if scope is Scope.SESSION else ""
        if scope is Scope.REPOSITORY and not (of := await self._p.granting.repository(session)):
            raise OpError("no_repo", "the repository of this session cannot be looked at")
        wider = Wider(number_of(m, "first", 0, 0, 4096), text_of(m, "under"))
        return _Wish(session, asked, action, verdict_of(asked, known), scope, of, wider)

    @staticmethod
    def _made(wish: _Wish, m: Fields, by: t.By, *, typed: bool) -> Made:
        """Raises NoGrant, OpError."""
        pattern = grants.widened(wish.action, wish.verdict, wish.wider, str(Path.home()))
        lasts = m.get("expires_s", DEFAULT_S)
        if isinstance(lasts, bool) or not isinstance(lasts, int) or not LEAST_S <= lasts <= MOST_S:
            raise OpError("bad_request", f"a rule lasts from {span(LEAST_S)} to {span(MOST_S)}")
        ends = datetime.now(UTC) + timedelta(seconds=lasts)
        asked = wish.asked
        return Made(
            grant=ids.grant_id(),
            scope=wish.scope,
            of=wish.of,
            pattern=pattern,
            wider=wish.wider,
            words=grants.words(wish.action, wish.wider),
            title=asked.title,
            asked_by=wish.verdict.rule,
            source=Source(wish.session.sid, asked.approval_id, asked.call_id, asked.action_hash),
            by=by,
            ts=now_utc(),
            expires=ends.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            count=number_of(m, "count", DEFAULT_COUNT, 1, granted.MOST_COUNT),
            typed=typed and wish.critical,
        )


def view_of(standing: RuleStanding, now: str) -> GrantView:
    """A rule as clients see it."""
    made = standing.made
    gone = standing.revoked
    return GrantView(
        grant=made.grant,
        scope=str(made.scope),
        of=made.of,
        title=made.title,
        words=made.words,
        asked_by=made.asked_by,
        ts=made.ts,
        expires=made.expires,
        count=made.count,
        typed=made.typed,
        uses=[
            UseView(sid=used.sid, call_id=used.call_id, action_hash=used.action_hash, ts=used.ts)
            for used in standing.uses.values()
        ],
        ended=standing.ends(now),
        sid=made.source.sid,
        approval_id=made.source.approval_id,
        by=made.by,
        revoked=RevokedView(by=gone.by, ts=gone.ts, why=gone.why) if gone is not None else None,
    )
