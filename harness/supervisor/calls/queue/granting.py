"""What the rules that a person made mean for sessions: a request that one covers is allowed by it, and on record."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from harness.domain.actions.action import Action, action_hash
from harness.domain.calls.approval_kind import Request
from harness.domain.decision import Decision, Ruling
from harness.domain.states import Desired
from harness.eventlog.framing import LogError
from harness.events import types as t
from harness.events.body import By
from harness.events.calls.grant_events import grant_of, rule_name
from harness.policy import granted
from harness.policy.decide import Verdict
from harness.policy.grant_records import Made, Scope, Used
from harness.policy.granted import Case, Grants
from harness.projections.state.session_state import OpenApproval
from harness.supervisor.base import ids
from harness.supervisor.base.errors import LinkLost, OpError
from harness.supervisor.calls.on_record import action_of
from harness.supervisor.calls.queue.grant_book import GrantBook
from harness.supervisor.calls.recall import Recall
from harness.supervisor.fleet.call_records import OpenCall
from harness.supervisor.fleet.session import Session
from harness.workspace.git.errors import WorkspaceError


@dataclass(frozen=True, slots=True)
class Covered:
    """A use that is durable: by which rule, and which of its calls this is."""

    grant: str
    record: t.GrantUsed

    def verdict(self, asked: Verdict) -> Verdict:
        """What the policy's question becomes."""
        left = f"call {self.record.use} of {self.record.count}"
        return Verdict(Ruling.ALLOW, rule_name(self.grant), f"a rule of yours allows it ({left})", asked.risk)


class Granting:
    """Looks rules up and puts their uses on record, first in their own log, then in the session's."""

    def __init__(self, book: GrantBook, recall: Recall) -> None:
        self.book = book
        self._recall = recall

    async def repository(self, session: Session) -> str:
        """The common git folder of a session; empty when it cannot be told, so that no rule of a repository fits."""
        try:
            return (await self._recall.of(session))[1].of
        except WorkspaceError:
            return ""

    async def case(self, session: Session, call_id: str, action: Action, verdict: Verdict) -> Case:
        """A request as rules look at it."""
        return Case(session.sid, await self.repository(session), call_id, action, verdict)

    async def covered(self, case: Case) -> Covered | None:
        """The rule that covers a request, its use durable; None when none does, or it cannot be put on record."""
        try:
            known = await self.book.read()
            now = now_utc()
            if granted.bury(known, now):
                await self.book.change(lambda known: granted.bury(known, now))
                known = await self.book.read()
            if not known.live(now) and not any(case.sid == sid for s in known.by_id.values() for sid, _ in s.uses):
                return None
            made = await self.book.change(lambda known: granted.use(known, case, now))
            known = await self.book.read()
        except OpError:
            return None
        used = next((entry for entry in made if isinstance(entry, Used)), None)
        return None if used is None else Covered(used.grant, _record(known, used))

    async def stands(self, rule: str) -> bool:
        """False when what allowed a call was a rule that was taken back, or has expired, since."""
        grant = grant_of(rule)
        if not grant:
            return True
        try:
            standing = (await self.book.read()).by_id.get(grant)
        except OpError:
            return False
        return standing is not None and standing.ends(now_utc()) in ("", "used up")

    async def settle(self, sessions: Iterable[Session], made: Made) -> int:
        """Decide what is open and covered by a rule that was just made, each call alone; returns how many."""
        count = 0
        for session in list(sessions):
            if session.finished or session.foreign or session.damaged or session.link is None:
                continue
            if made.scope is Scope.SESSION and made.of != session.sid:
                continue
            for asked in [a for a in session.state.approvals.values() if a.kind == Request.TOOL]:
                try:
                    count += await self._settle(session, asked, made)
                except (OpError, LinkLost, LogError, OSError, ValueError):
                    continue  # it stays open, and a person decides it
        return count

    async def _settle(self, session: Session, asked: OpenApproval, made: Made) -> bool:
        async with session.lock:
            known = session.track.calls.get(asked.call_id)
            action = None if known is None else await action_of(session, known)
            if known is None or action is None or action_hash(action.to_wire()) != asked.action_hash:
                return False
            case = await self.case(session, asked.call_id, action, verdict_of(asked, known))
            if not granted.fits(made, case):
                return False
            covered = await self.covered(case)
            if covered is None or asked.approval_id not in session.state.approvals:
                return False
            async with session.wish:
                if session.state.desired != Desired.RUNNING:
                    return False
                await session.append(
                    t.ApprovalDecided(
                        approval_id=asked.approval_id,
                        decision_id=ids.decision_id(),
                        decision=Decision.ALLOW,
                        call_id=asked.call_id,
                        action_hash=asked.action_hash,
                        by=By(client=rule_name(covered.grant), uid=made.by.uid, pid=made.by.pid),
                    ),
                    covered.record,
                )
            return True


def verdict_of(asked: OpenApproval, known: OpenCall) -> Verdict:
    """The verdict that an open request came from."""
    judged = known.judged
    return Verdict(Ruling.ASK, judged.rule if judged else "", judged.reason if judged else "", asked.risk)


def _record(known: Grants, used: Used) -> t.GrantUsed:
    standing = known.by_id[used.grant]
    use = list(standing.uses).index((used.sid, used.call_id)) + 1
    return t.GrantUsed(
        grant=used.grant, call_id=used.call_id, action_hash=used.action_hash, use=use, count=standing.made.count
    )


def now_utc() -> str:
    """The time as rules have it: RFC 3339 in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
