"""The rules that stand, as their log says, and what a request meets there. Pure: whoever asks makes the answer durable
before it counts.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.domain.actions.action import Action, action_hash
from harness.domain.decision import Ruling
from harness.domain.text import formatting
from harness.events.body import By
from harness.policy.decide import Verdict
from harness.policy.grant_records import Entry, Made, Revoked, Scope, Used
from harness.policy.grants import NoGrant, NoRule, covers, critical

MOST = 200
"""Rules that may stand at a time: more than that nobody reads."""
MOST_COUNT = 1000
EARLIER = "from later"
"""How a rule ends while the clock says less than when it was made."""
CLOCK = By(client="clock")
"""Who takes back what was seen to have expired."""
_SET_BY_S = 300.0
"""Seconds by which a clock may be set back, as machines do by themselves."""
_NEAREST = (Scope.SESSION, Scope.REPOSITORY, Scope.FLEET)


@dataclass(slots=True)
class RuleStanding:
    """One rule, the calls that it let run (by session and call, each as its newest record says), and its revocation."""

    made: Made
    uses: dict[tuple[str, str], Used] = field(default_factory=dict)
    revoked: Revoked | None = None

    def ends(self, now: str) -> str:
        """Why it covers no further call; empty while it does."""
        if self.revoked is not None:
            return "expired" if self.revoked.by == CLOCK else "revoked"
        if self.made.expires <= now:
            return "expired"
        if _set_back(self.made.ts, now):
            return EARLIER
        return "used up" if len(self.uses) >= self.made.count else ""

    def holds(self, now: str, sid: str, call_id: str) -> bool:
        """True while it covers this call: one that it covered before does not count again."""
        ended = self.ends(now)
        return not ended or (ended == "used up" and (sid, call_id) in self.uses)


@dataclass(frozen=True, slots=True)
class Case:
    """A request as a rule looks at it. ``repository`` is the common git folder, empty when nobody knows it."""

    sid: str
    repository: str
    call_id: str
    action: Action
    verdict: Verdict


class Grants:
    """All rules by their id, folded from the log."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self.by_id: dict[str, RuleStanding] = {}
        for entry in entries:
            self.apply(entry)

    def apply(self, entry: Entry) -> None:
        """Take in one durable record."""
        if isinstance(entry, Made):
            self.by_id.setdefault(entry.grant, RuleStanding(entry))
            return
        standing = self.by_id.get(entry.grant)
        if standing is None:
            return
        if isinstance(entry, Used):
            standing.uses[entry.sid, entry.call_id] = entry
        elif standing.revoked is None:
            standing.revoked = entry

    def live(self, now: str) -> list[RuleStanding]:
        """Those that may still cover a call."""
        return [standing for standing in self.by_id.values() if not standing.ends(now)]


def _set_back(ts: str, now: str) -> bool:
    """True when a rule was made at a time that is still to come: a clock that was ahead then would have it last longer
    than its person said.
    """
    made = formatting.parse_ts(ts)
    seen = formatting.parse_ts(now)
    return made is not None and seen is not None and seen < made - _SET_BY_S


def fits(made: Made, case: Case) -> bool:
    """True when the rule is about this request, whether or not it still stands."""
    if case.verdict.verdict != Ruling.ASK or case.verdict.rule != made.asked_by or not _in_scope(made, case):
        return False
    if critical(case.action, case.verdict.risk) and not made.typed:
        return False
    return covers(made.pattern, made.wider, case.action)


def _in_scope(made: Made, case: Case) -> bool:
    match made.scope:
        case Scope.SESSION:
            return made.of == case.sid
        case Scope.REPOSITORY:
            return bool(case.repository) and made.of == case.repository
    return True


def use(known: Grants, case: Case, now: str) -> list[Entry]:
    """The use of the rule that covers this request, the nearest scope first; nothing when none does."""
    fitting = [s for s in known.by_id.values() if s.holds(now, case.sid, case.call_id) and fits(s.made, case)]
    if not fitting:
        return []
    best = min(fitting, key=lambda s: (_NEAREST.index(s.made.scope), s.made.ts, s.made.grant))
    return [
        Used(
            grant=best.made.grant,
            sid=case.sid,
            call_id=case.call_id,
            action_hash=action_hash(case.action.to_wire()),
            ts=now,
        )
    ]


def bury(known: Grants, now: str) -> list[Entry]:
    """What makes rules that have expired stay so, whatever the clock says later."""
    over = [s.made for s in known.by_id.values() if s.revoked is None and s.made.expires <= now]
    return [Revoked(grant=made.grant, by=CLOCK, ts=now, why=f"it lasted until {made.expires}") for made in over]


def make(known: Grants, made: Made, now: str) -> list[Entry]:
    """A new rule. Raises NoGrant."""
    if not 1 <= made.count <= MOST_COUNT:
        raise NoGrant(f"the count must be from 1 to {MOST_COUNT}")
    if made.expires <= now:
        raise NoGrant("it would have expired before it is made")
    if len(known.live(now)) >= MOST:
        raise NoGrant(f"{MOST} rules stand already; revoke some first: watchfloor grants")
    if made.grant in known.by_id:
        raise NoGrant("a rule of this name is there already; try again")
    return [made]


def revoke(known: Grants, revoked: Revoked, now: str) -> list[Entry]:
    """Take a rule back, also one that is used up: what it allowed may not have started. Raises NoGrant."""
    standing = known.by_id.get(revoked.grant)
    if standing is None:
        raise NoRule(f"there is no rule {revoked.grant[:40]!r}; see: watchfloor grants")
    if (ended := standing.ends(now)) in ("revoked", "expired"):
        raise NoGrant(f"rule {revoked.grant} is {ended} already")
    return [revoked]
