"""The gate before one endpoint and credential: who may ask it now, who waits, who tries first. Pure: time and chance
are handed in.

``now`` is seconds of a clock that also counts while the machine sleeps; ``roll`` is a random number in [0, 1). A
session `may` go or holds; once it goes it is `sent`; what came of it is `told`. While the gate is closed one session at
a time goes as the probe.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from harness.agents.supervisor_requests import AttemptOutcome
from harness.domain.calls.attempt import LIMITS, LOOKED_AT, NEEDS_PERSON, WAITS, AttemptKind

OPEN = "open"
DOWN = "down"
LIMITED = "limited"
PERSON = "person"

LONGEST_FREE_S = 40.0
"""Longest pause between probes that cost nothing."""
LONGEST_PAID_S = 300.0
"""Longest pause between probes that may have been billed."""
LONGEST_OBEYED_S = 3600.0
"""An endpoint that asks for a longer wait is asked again this often."""
SPEND_LOOK_S = 900.0
"""What may end without a person is asked again this often: paying needs no second act here."""
DETOUR_S = 600.0
"""An endpoint that did nothing but send us elsewhere for so long needs a person, as a wrong address does."""
GRANT_S = 30.0
"""How long a chosen probe may take to be sent before another session tries."""
PATIENCE_S = 60.0
"""How long a probe that was sent may take to be heard of before another session tries."""
RAMP_S = 10.0
"""All that waited go on within so long after the gate opened."""
GAP_S = 0.5
"""After the gate opened at least one goes on in each such stretch."""
FLAP_S = 60.0
"""Trouble so soon after opening goes on where it left off, at half its pause."""
ENOUGH_WITNESSES = 3
"""Sessions whose requests have failed before a failure that may be the request's own counts as the endpoint's."""
SUSPECT_AFTER = 2
"""Failures of one session, others having got through after each, until it no longer closes the gate."""
POISON_AFTER = 8
"""Failures of one session, others having got through after each, until a person is asked."""
PASSED_ENOUGH = 20
"""Replies that others must have had meanwhile before a person is asked; else it is the endpoint that fails."""
PASSED_PER_FAILURE = 10
"""So many more replies for each time that one of the others failed."""


class Key(NamedTuple):
    """Whose gate it is: an endpoint with a credential's short name (empty: there is none), and a model when only that
    one is refused.
    """

    url: str
    name: str
    model: str = ""

    @property
    def label(self) -> str:
        return "|".join(self)

    @classmethod
    def labelled(cls, label: str) -> Key | None:
        """The one with this label; None when it is no label."""
        parts = label.split("|")
        return cls(*parts) if len(parts) == len(cls._fields) else None


def sure(outcome: AttemptOutcome) -> bool:
    """False when the trouble may be this request's own: another session's request could get through."""
    return (
        outcome.kind in (AttemptKind.RATE_LIMIT, AttemptKind.OVERLOADED, AttemptKind.DETOUR)
        or outcome.kind in NEEDS_PERSON
        or (outcome.kind == AttemptKind.NETWORK and outcome.free)
    )


@dataclass(frozen=True, slots=True)
class Go:
    """Ask now. ``probe``: it is watched whether the endpoint answers again."""

    probe: bool = False


@dataclass(frozen=True, slots=True)
class Hold:
    """Not before ``until`` (infinity: when somebody says so)."""

    until: float


@dataclass(frozen=True, slots=True)
class Poison:
    """The endpoint fails at this session's request and answers the others."""

    times: int
    message: str


Answer: TypeAlias = Go | Hold | Poison


@dataclass(slots=True)
class Strikes:
    """Failures in a row of one session that may be its own; ``cleared`` counts those after which another session got
    through.

    They are its own only while the endpoint answers the others: ``passed`` and ``failed`` count the replies of the
    others since and their failures (several in a row of one session as one), and where too many failed the count begins
    anew.
    """

    count: int = 0
    cleared: int = 0
    passed: int = 0
    failed: int = 0
    fresh: bool = False
    not_before: float = 0.0
    message: str = ""

    @property
    def poison(self) -> bool:
        """True when chance does not explain that it fails and the others do not."""
        return self.cleared >= POISON_AFTER and self.passed >= PASSED_ENOUGH

    def other_passed(self) -> None:
        """Another session had its reply."""
        self.passed = self.passed + 1
        self.cleared = self.cleared + self.fresh
        self.fresh = False

    def other_failed(self) -> None:
        """Another session's request failed, after one that did not."""
        self.failed += 1
        if self.failed * PASSED_PER_FAILURE > self.passed:
            self.cleared = 0
            self.passed = 0
            self.failed = 0
            self.fresh = False


@dataclass(slots=True)
class Gate:
    """State of one gate; only its methods change it."""

    state: str = OPEN
    why: AttemptKind = AttemptKind.OK
    message: str = ""
    asked_wait_s: float = 0.0
    since: float = 0.0
    closings: int = 0
    opened_at: float = -math.inf
    next_try: float = 0.0
    fresh_try: float = 0.0
    failures: int = 0
    paid: bool = False
    """The newest failure may have cost something."""
    by_words: bool = False
    """The first words of a reply opened it, and no reply has been whole since."""
    away_since: float = math.inf
    """Since when it does nothing but send us elsewhere."""
    retried: bool = False
    """A person said: try again; nothing is asked of them until that try is over."""
    line: dict[str, float] = field(default_factory=dict)
    """Who waits, in order of arrival, with the time of its last probe."""
    flying: dict[str, int] = field(default_factory=dict)
    """Whose request is out, with the number of closings before it was sent."""
    probe: str = ""
    probe_until: float = 0.0
    slots: dict[str, float] = field(default_factory=dict)
    next_slot: float = 0.0
    gap: float = 0.0
    ramp_end: float = -math.inf
    witnesses: set[str] = field(default_factory=set)
    strikes: dict[str, Strikes] = field(default_factory=dict)

    # -- asking ------------------------------------------------------------------------------------

    def may(self, sid: str, now: float) -> Answer:
        """Whether this session may ask now; one that may not stands in line until it goes or `left`."""
        if sid in self.flying:
            if self.state == OPEN or self.flying[sid] == self.closings:
                return Go(self.probe == sid)
            del self.flying[sid]
        self.line.setdefault(sid, -math.inf)
        own = self.strikes.get(sid)
        if own is not None and own.poison:
            self.left(sid)
            return Poison(own.cleared, own.message)
        if self.state == OPEN:
            if now < self.ramp_end:
                self._slot(sid, now)
            ready = self.ready_at(sid)
            return Go() if now >= ready else Hold(ready)
        self._pick(now)
        if self.probe == sid:
            return Go(True)
        return Hold(self.probe_until if self.probe else self._try_at(sid))

    def sent(self, sid: str, now: float) -> None:
        """It goes now."""
        self.line.pop(sid, None)
        self.slots.pop(sid, None)
        self.flying[sid] = self.closings
        if self.probe == sid:
            self.probe_until = now + PATIENCE_S

    def lost(self, sid: str) -> None:
        """What it asked will not be heard of; it stays in line if it stands there."""
        if self.flying.pop(sid, None) is not None and self.probe == sid:
            self.probe = ""

    def left(self, sid: str) -> None:
        """It does not want to ask any more."""
        self.line.pop(sid, None)
        self.slots.pop(sid, None)
        self.flying.pop(sid, None)
        if self.probe == sid:
            self.probe = ""

    def excuse(self, sid: str) -> None:
        """A person was told that its request fails: it may go on failing for a while, but not close the gate."""
        self.strikes[sid] = Strikes(cleared=SUSPECT_AFTER)

    def ended(self, sid: str) -> None:
        """The session is over."""
        self.left(sid)
        self.strikes.pop(sid, None)
        self.witnesses.discard(sid)

    def wake(self, now: float) -> list[str]:
        """Sessions in line that may go now."""
        if self.state == OPEN:
            return [sid for sid in self.line if self.ready_at(sid) <= now]
        self._pick(now)
        return [self.probe] if self.probe in self.line else []

    def due(self, now: float) -> float | None:
        """When `wake` has news again; None while there is nothing to wait for."""
        if self.state == OPEN:
            return min((at for at in map(self.ready_at, self.line) if at > now), default=None)
        if self.probe:
            return self.probe_until
        at = min((self._try_at(sid) for sid in self.line), default=math.inf)
        return at if at < math.inf else None

    def ready_at(self, sid: str) -> float:
        """When this session may go, the gate being open."""
        own = self.strikes.get(sid)
        return max(
            self.slots.get(sid, 0.0), own.not_before if own is not None and own.cleared >= SUSPECT_AFTER else 0.0
        )

    def _try_at(self, sid: str) -> float:
        if self.witnesses and sid not in self.witnesses and len(self.witnesses) < ENOUGH_WITNESSES:
            return min(self.next_try, self.fresh_try)
        return self.next_try

    def _pick(self, now: float) -> None:
        """Choose the probe when it is time: who has not failed first, then who tried longest ago."""
        if self.probe and now >= self.probe_until:
            if self.probe in self.line:
                self.line[self.probe] = now  # it did not come: the next one
            self.probe = ""
        if self.probe or not self.line:
            return
        order = list(self.line)
        best = min(order, key=lambda sid: (sid in self.witnesses, self.line[sid], order.index(sid)))
        if now >= self._try_at(best):
            self.probe = best
            self.probe_until = now + GRANT_S

    def _slot(self, sid: str, now: float) -> None:
        """Its place in the ramp, once; who comes late goes at its end."""
        if sid not in self.slots:
            self.slots[sid] = min(max(now, self.next_slot), self.ramp_end)
            self.next_slot += self.gap

    # -- outcomes ----------------------------------------------------------------------------------

    def heard(self, sid: str, now: float, roll: float) -> None:
        """The first words of a reply: an endpoint that was away is back.

        One that cut replies has to send a whole one first, and so has one that broke off twice in the middle.
        """
        breaks = self.why == AttemptKind.CUT or (self.paid and self.failures > 1)
        if self.state != OPEN and not breaks and self.flying.get(sid) == self.closings:
            self._open(now, roll)
            self.by_words = True

    def told(self, sid: str, outcome: AttemptOutcome, now: float, roll: float) -> None:
        """What came of a request."""
        early = self.flying.pop(sid, None) != self.closings
        if outcome.kind in WAITS - LIMITS and (sid not in self.strikes or self.strikes[sid].count == 0):
            for other in self.strikes.values():
                other.other_failed()
        if self.probe == sid:
            self.probe = ""
        self.away_since = min(self.away_since, now) if outcome.kind == AttemptKind.DETOUR else math.inf
        if outcome.kind in NEEDS_PERSON or now - self.away_since >= DETOUR_S:
            self._close(PERSON, sid, outcome, now, roll, early)
        elif outcome.kind not in WAITS:
            self._answers(sid, outcome, now, roll, early)
        elif sure(outcome) or not self._suspected(sid, outcome, now, roll) or self.state != OPEN:
            self._close(LIMITED if outcome.kind in LIMITS else DOWN, sid, outcome, now, roll, early)

    def answered(self, now: float) -> None:
        """A person says: try again. What the endpoint itself asked to wait stands."""
        if self.state == PERSON:
            self.retried = True
        if self.state in (PERSON, DOWN):
            self.next_try = min(self.next_try, now)
            self.witnesses.clear()

    def doubt(self, why: AttemptKind, message: str, since: float, now: float, asked: bool = False) -> None:
        """Begin closed, for others know of trouble here: the first request is the probe, unless it needs a person or
        one was ``asked``.
        """
        person = asked or why in NEEDS_PERSON
        if why == AttemptKind.DETOUR:
            self.away_since = min(self.away_since, since)
        if self.state == OPEN:
            self.since = since
            self.closings = self.closings + 1
        elif self.state == PERSON and not person:
            return
        self.state = PERSON if person else DOWN
        self.why = why
        self.message = message
        self.since = min(self.since, since)
        self.next_try = now
        if person:
            self.next_try = now + SPEND_LOOK_S if why in LOOKED_AT else math.inf

    def _answers(self, sid: str, outcome: AttemptOutcome, now: float, roll: float, early: bool) -> None:
        self.by_words = False
        self.strikes.pop(sid, None)
        for other in self.strikes.values():
            other.other_passed()
        if self.state != OPEN and (not early or (self.witnesses and sid not in self.witnesses)):
            self._open(now, roll)
        if self.state == OPEN and outcome.kind == AttemptKind.OK and outcome.wait_s:
            self._close(
                LIMITED, sid, AttemptOutcome(AttemptKind.RATE_LIMIT, outcome.message, outcome.wait_s), now, roll, False
            )

    def _suspected(self, sid: str, outcome: AttemptOutcome, now: float, roll: float) -> bool:
        """Count a failure that may be the session's own; True when it is its own by all that is known."""
        own = self.strikes.setdefault(sid, Strikes())
        own.count = own.count + 1
        own.fresh = True
        own.message = outcome.message
        if own.cleared < SUSPECT_AFTER:
            return False
        own.not_before = now + _pause(own.count, outcome, roll)
        return True

    def _close(self, state: str, sid: str, outcome: AttemptOutcome, now: float, roll: float, early: bool) -> None:
        was_open = self.state == OPEN
        if was_open:
            self.since = now
            self.closings = self.closings + 1
            if outcome.free or not self.by_words:
                self.failures = self.failures // 2 if now - self.opened_at < FLAP_S else 0
            self.by_words = False
            self.witnesses.clear()
            self.slots.clear()
            self.ramp_end = -math.inf
        elif early and not (state == PERSON and self.state != PERSON):
            if not sure(outcome) and self.witnesses:
                self.witnesses.add(sid)
            if outcome.wait_s is not None and self.state != PERSON:
                self.next_try = max(self.next_try, now + min(outcome.wait_s, LONGEST_OBEYED_S))
            return
        if sure(outcome):
            self.witnesses.clear()
        else:
            self.witnesses.add(sid)
        self.state = state
        self.why = outcome.kind
        self.message = outcome.message
        self.retried = False
        self.asked_wait_s = outcome.wait_s or 0.0
        self.failures += 1
        self.paid = not outcome.free
        if state == PERSON:
            self.next_try = now + SPEND_LOOK_S if outcome.kind in LOOKED_AT else math.inf
        else:
            self.next_try = now + _pause(self.failures, outcome, roll)
        self.fresh_try = now + 1.0 + 2.0 * roll

    def _open(self, now: float, roll: float) -> None:
        self.state = OPEN
        self.why = AttemptKind.OK
        self.message = ""
        self.opened_at = now
        self.retried = False
        self.probe = ""
        self.asked_wait_s = 0.0
        self.witnesses.clear()
        self.gap = min(GAP_S, RAMP_S / max(1, len(self.line)))
        self.next_slot = now + roll * self.gap
        self.ramp_end = self.next_slot + self.gap * len(self.line)
        for sid in self.line:
            self._slot(sid, now)


def _pause(failures: int, outcome: AttemptOutcome, roll: float) -> float:
    """Seconds until the next try after so many failures in a row: the greater of a growing pause of our own and of what
    the endpoint asks for, up to `LONGEST_OBEYED_S`.
    """
    longest = LONGEST_FREE_S if outcome.free else LONGEST_PAID_S
    own = float(min(longest, 2.0 ** min(failures - 1, 30)) * (0.5 + 0.5 * roll))
    if outcome.wait_s is None:
        return own
    asked = min(max(0.0, outcome.wait_s), LONGEST_OBEYED_S)
    return max(own, asked + roll * min(5.0, 0.5 + asked / 20))
