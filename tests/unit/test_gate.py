"""The gate before an endpoint, with a simulated clock: who asks when, who waits, how trouble begins and ends."""

from __future__ import annotations

import heapq
import itertools
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.agents.supervisor_requests import AttemptOutcome
from harness.domain.calls.attempt import NEEDS_PERSON, AttemptKind
from harness.supervisor.endpoints import endpoint_gate as g

REFUSED = AttemptOutcome(AttemptKind.NETWORK, "connection refused")
OVERLOADED = AttemptOutcome(AttemptKind.OVERLOADED, "Overloaded")
BROKEN = AttemptOutcome(AttemptKind.SERVER, "Internal server error", free=False)
CUT = AttemptOutcome(AttemptKind.CUT, "the stream ended before the reply was complete", free=False)
OK = AttemptOutcome(AttemptKind.OK)


def ask(gate: g.Gate, sid: str, now: float) -> g.Answer:
    answer = gate.may(sid, now)
    if isinstance(answer, g.Go):
        gate.sent(sid, now)
    return answer


def goes(gate: g.Gate, sid: str, now: float) -> bool:
    return isinstance(ask(gate, sid, now), g.Go)


def closed(outcome: AttemptOutcome = REFUSED, sids: str = "a") -> g.Gate:
    """A gate that one failure of ``a`` closed at time 0; the others of ``sids`` stand in line."""
    gate = g.Gate()
    assert goes(gate, "a", 0.0)
    gate.told("a", outcome, 0.0, 0.5)
    for sid in sids:
        assert not goes(gate, sid, 0.0)
    return gate


# -- one by one ------------------------------------------------------------------------------------


def test_an_open_gate_lets_everybody_ask_at_once() -> None:
    gate = g.Gate()
    assert all(goes(gate, sid, 0.0) for sid in "abcdefgh")


def test_one_failure_of_the_endpoint_holds_everybody_and_one_probe_goes_first() -> None:
    gate = closed(sids="abc")
    at = gate.due(0.0)
    assert at is not None
    assert not any(goes(gate, sid, at - 0.01) for sid in "abc")
    assert gate.wake(at) == ["a"]
    assert goes(gate, "a", at)
    assert not goes(gate, "b", at)
    gate.told("a", OK, at + 1, 0.5)
    due = [gate.due(at + 1)]
    while (when := gate.due(due[-1] or 0.0)) is not None:
        due.append(when)
    assert len(due) == 2
    assert all(at + 1 < (d or 0) <= at + 1 + 3 * g.GAP_S for d in due)
    assert goes(gate, "b", due[0] or 0)
    assert not goes(gate, "c", due[0] or 0)
    assert goes(gate, "c", due[1] or 0)


def test_the_first_words_open_it_but_not_where_replies_are_cut() -> None:
    for outcome, opens in ((OVERLOADED, True), (CUT, False)):
        gate = closed(outcome)
        at = gate.due(0.0) or 0.0
        assert goes(gate, "a", at)
        gate.heard("a", at + 1, 0.5)
        assert (gate.state == g.OPEN) == opens
        gate.told("a", OK, at + 2, 0.5)
        assert gate.state == g.OPEN


@pytest.mark.parametrize("kind", [AttemptKind.NETWORK, AttemptKind.OVERLOADED, AttemptKind.SERVER])
def test_replies_that_begin_and_break_off_are_not_asked_for_again_and_again(kind: AttemptKind) -> None:
    """Each may have been billed in full: a cap must not be used up by minutes of trouble."""
    broken = AttemptOutcome(kind, "the connection broke during the reply", free=False)
    gate = closed(broken)
    now = 0.0
    asked = 0
    while (at := gate.due(now)) is not None and at < 600.0:
        now = at
        assert goes(gate, "a", now)
        asked += 1
        gate.heard("a", now, 0.5)
        gate.told("a", broken, now + 0.5, 0.5)
        gate.may("a", now + 0.5)
    assert asked <= 12
    assert goes(gate, "a", at or math.inf)
    gate.heard("a", now, 0.5)
    assert gate.state != g.OPEN
    gate.told("a", OK, now + 1, 0.5)
    assert gate.state == g.OPEN


def test_one_broken_reply_lets_the_first_words_open_it() -> None:
    gate = closed(AttemptOutcome(AttemptKind.NETWORK, "the connection broke during the reply", free=False))
    assert goes(gate, "a", gate.due(0.0) or 0.0)
    gate.heard("a", 3.0, 0.5)
    assert gate.state == g.OPEN


def test_what_was_sent_before_the_trouble_neither_opens_nor_prolongs_it() -> None:
    gate = g.Gate()
    assert all(goes(gate, sid, 0.0) for sid in "abc")
    gate.told("a", OVERLOADED, 1.0, 0.5)
    first = gate.next_try
    gate.told("b", OVERLOADED, 1.1, 0.5)
    gate.told("c", OK, 1.2, 0.5)
    assert (gate.state, gate.next_try, gate.failures) == (g.DOWN, first, 1)


def test_pauses_grow_to_their_longest_and_never_end() -> None:
    for outcome, longest in (
        (REFUSED, g.LONGEST_FREE_S),
        (AttemptOutcome(AttemptKind.SERVER, free=False), g.LONGEST_PAID_S),
    ):
        gate = closed(outcome)
        now = 0.0
        pauses = []
        for _ in range(200):
            at = gate.due(now)
            assert at is not None
            pauses.append(at - now)
            now = at
            assert goes(gate, "a", now)
            gate.told("a", outcome, now, 0.5)
            gate.may("a", now)
        assert pauses[0] < 2
        assert max(pauses) <= longest
        assert pauses[-1] > longest / 2


def test_retry_after_is_a_lower_bound_and_a_hopeless_one_is_asked_again_every_hour() -> None:
    gate = closed(AttemptOutcome(AttemptKind.RATE_LIMIT, "slow down", wait_s=120.0))
    assert gate.state == g.LIMITED
    assert 120.0 <= gate.next_try <= 130.0
    gate = closed(AttemptOutcome(AttemptKind.RATE_LIMIT, "come back in 2099", wait_s=2.3e9))
    assert g.LONGEST_OBEYED_S <= gate.next_try <= g.LONGEST_OBEYED_S + 5
    assert gate.asked_wait_s == 2.3e9


@pytest.mark.parametrize("asks", [0.0, 0.001, -30.0, 0.5])
@pytest.mark.parametrize("kind", [AttemptKind.RATE_LIMIT, AttemptKind.OVERLOADED])
def test_a_wait_of_nothing_is_no_leave_to_ask_at_once(kind: AttemptKind, asks: float) -> None:
    """However short the wait that it asks for: a fleet of ten asks it less and less often."""
    gate = g.Gate()
    chance = random.Random(7)
    sids = [f"s{n}" for n in range(10)]
    asked: list[float] = []
    now = 0.0
    while now < 600.0:
        for sid in sids:
            if goes(gate, sid, now):
                asked.append(now)
                gate.told(sid, AttemptOutcome(kind, "slow down", wait_s=asks), now, chance.random())
        now += 0.05
    assert sum(at < 60.0 for at in asked) <= 9, asked[:20]
    assert sum(at >= 540.0 for at in asked) <= 3


def test_a_used_up_rate_limit_closes_before_the_next_request() -> None:
    gate = g.Gate()
    assert goes(gate, "a", 0.0)
    gate.told("a", AttemptOutcome(AttemptKind.OK, wait_s=30.0), 1.0, 0.0)
    assert gate.state == g.LIMITED
    assert not goes(gate, "b", 30.9)
    assert goes(gate, "b", 31.0)


AWAY = AttemptOutcome(AttemptKind.DETOUR, "it redirects to 'https://login.example' for now")


def away_until_asked(gate: g.Gate, now: float) -> float:
    """Every try is sent elsewhere until a person is asked: when that is."""
    while gate.state != g.PERSON:
        at = gate.due(now)
        assert at is not None
        assert at - now <= g.LONGEST_FREE_S
        now = at
        assert goes(gate, "a", now)
        gate.told("a", AWAY, now, 0.5)
        gate.may("a", now)
    return now


def test_a_detour_is_tried_again_before_a_person_is_asked_and_looked_at_afterwards() -> None:
    gate = closed(AWAY)
    assert gate.state == g.DOWN
    asked_at = away_until_asked(gate, 0.0)
    assert g.DETOUR_S <= asked_at < g.DETOUR_S + g.LONGEST_FREE_S
    look = gate.due(asked_at)
    assert look == asked_at + g.SPEND_LOOK_S
    assert goes(gate, "a", look)
    gate.told("a", OK, look, 0.5)
    assert gate.state == g.OPEN
    assert goes(gate, "a", look + g.RAMP_S)
    gate.told("a", AWAY, look + g.RAMP_S, 0.5)
    assert gate.state == g.DOWN, "a new detour has all its time again"


def test_a_detour_among_other_trouble_has_its_own_time() -> None:
    gate = closed(REFUSED)
    now = gate.due(0.0) or 0.0
    assert goes(gate, "a", now)
    gate.told("a", AWAY, now, 0.5)
    gate.may("a", now)
    now = g.DETOUR_S
    assert goes(gate, "a", now)
    gate.told("a", REFUSED, now, 0.5)
    gate.may("a", now)
    assert gate.state == g.DOWN
    assert away_until_asked(gate, now) > 2 * g.DETOUR_S


@pytest.mark.parametrize("asked", [False, True])
def test_a_new_supervisor_neither_asks_at_once_nor_takes_its_question_back(asked: bool) -> None:
    gate = g.Gate()
    gate.doubt(AttemptKind.DETOUR, AWAY.message, 1000.0, 1000.0, asked)
    assert gate.state == (g.PERSON if asked else g.DOWN)
    gate.may("a", 1000.0)
    if asked:
        assert gate.due(1000.0) == 1000.0 + g.SPEND_LOOK_S
    else:
        assert away_until_asked(gate, 1000.0) >= 1000.0 + g.DETOUR_S


@pytest.mark.parametrize("kind", sorted(NEEDS_PERSON))
def test_what_needs_a_person_waits_for_one(kind: AttemptKind) -> None:
    gate = closed(AttemptOutcome(kind, "no"), sids="abc")
    assert gate.state == g.PERSON
    by_itself = gate.due(0.0)
    assert by_itself == (g.SPEND_LOOK_S if kind == "spend_limit" else None)
    gate.answered(100.0)
    assert gate.wake(100.0) == ["a"]
    assert goes(gate, "a", 100.0)
    assert not goes(gate, "b", 100.0)
    gate.told("a", AttemptOutcome(kind, "still no"), 101.0, 0.5)
    assert gate.state == g.PERSON
    assert not gate.retried
    gate.answered(200.0)
    gate.may("a", 200.0)
    (sid,) = gate.wake(200.0)
    assert goes(gate, sid, 200.0)
    gate.told(sid, OK, 201.0, 0.5)
    assert gate.state == g.OPEN


def test_a_request_that_the_endpoint_cannot_bear_does_not_close_it_for_the_others() -> None:
    gate = g.Gate()
    now = 0.0
    stopped = 0
    told = None
    for _ in range(4000):
        now += 1.0
        answer = ask(gate, "poison", now)
        if isinstance(answer, g.Go):
            gate.told("poison", BROKEN, now, 0.5)
        elif isinstance(answer, g.Poison):
            told = answer
            gate.excuse("poison")
            break
        for sid in "ab":
            if goes(gate, sid, now + 0.5):
                gate.told(sid, OK, now + 0.6, 0.5)
            else:
                stopped += 1
    assert told is not None
    assert told.times == g.POISON_AFTER
    assert told.message == BROKEN.message
    assert stopped < 30
    assert gate.state == g.OPEN
    again = ask(gate, "poison", now + 1)
    assert isinstance(again, g.Go), "a person's word gives it another try"


def test_who_came_later_need_not_wait_out_the_pause_of_one_bad_request() -> None:
    gate = closed(BROKEN)
    now = 0.0
    for _ in range(12):
        now = gate.due(now) or now
        assert goes(gate, "a", now)
        gate.told("a", BROKEN, now, 0.5)
        gate.may("a", now)
    assert gate.next_try - now > 100
    assert not goes(gate, "b", now)
    assert goes(gate, "b", now + 3.0)
    gate.told("b", OK, now + 4.0, 0.5)
    assert gate.state == g.OPEN


def test_a_probe_that_never_comes_or_is_never_heard_of_is_replaced() -> None:
    gate = closed(sids="abc")
    at = gate.due(0.0) or 0.0
    assert gate.wake(at) == ["a"]
    later = gate.due(at) or 0.0
    assert later == at + g.GRANT_S
    assert gate.wake(later) == ["b"]
    assert goes(gate, "b", later)
    assert gate.wake(later + g.PATIENCE_S - 0.1) == []
    assert gate.wake(later + g.PATIENCE_S) == ["c"]
    gate.left("c")
    assert gate.wake(later + g.PATIENCE_S) == ["a"]


def test_a_doubted_gate_begins_with_a_probe() -> None:
    gate = g.Gate()
    gate.doubt(AttemptKind.OVERLOADED, "Overloaded", -3600.0, 10.0)
    assert goes(gate, "a", 10.0)
    assert not goes(gate, "b", 10.0)
    assert gate.since == -3600.0


# -- rules that always hold ------------------------------------------------------------------------

OUTCOMES = st.sampled_from(
    [
        OK,
        REFUSED,
        OVERLOADED,
        BROKEN,
        CUT,
        AttemptOutcome(AttemptKind.RATE_LIMIT, wait_s=7.0),
        AttemptOutcome(AttemptKind.AUTH),
        AttemptOutcome(AttemptKind.SPEND_LIMIT),
        AttemptOutcome(AttemptKind.INVALID),
    ]
)
STEPS = st.lists(
    st.tuples(
        st.sampled_from(("ask", "told", "heard", "left", "answered")),
        st.sampled_from("abcdef"),
        OUTCOMES,
        st.floats(0, 60),
        st.floats(0, 0.999),
    ),
    max_size=120,
)


@settings(max_examples=100, deadline=None)
@given(STEPS)
def test_while_closed_one_probe_goes_and_nobody_is_forgotten(
    steps: list[tuple[str, str, AttemptOutcome, float, float]],
) -> None:
    gate = g.Gate()
    now = 0.0
    probes: dict[str, tuple[int, float]] = {}
    for what, sid, outcome, pause, roll in steps:
        now += pause
        was = gate.state
        if what == "ask":
            known = gate.flying.get(sid)
            if goes(gate, sid, now):
                if was != g.OPEN and known != gate.closings:
                    assert not [
                        s
                        for s, (closing, at) in probes.items()
                        if s != sid and closing == gate.closings and now - at < g.PATIENCE_S
                    ]
                    probes[sid] = (gate.closings, now)
            else:
                assert sid in gate.line
        elif what == "answered":
            gate.answered(now)
        elif what == "heard":
            gate.heard(sid, now, roll)
        else:
            probes.pop(sid, None)
            if what == "told":
                gate.told(sid, outcome, now, roll)
            else:
                gate.left(sid)
        assert not gate.line.keys() & gate.flying.keys()
        if gate.line and gate.state in (g.DOWN, g.LIMITED):
            due = gate.due(now)
            assert due is not None
            assert due <= now + g.LONGEST_OBEYED_S + g.GRANT_S
        if gate.state == g.OPEN:
            assert all(gate.ready_at(s) <= now + max(g.RAMP_S + g.GAP_S, g.LONGEST_PAID_S) for s in gate.line)


# -- two simulated hours ---------------------------------------------------------------------------


@dataclass
class Endpoint:
    """What the endpoint does at a time, and who asked it when."""

    trouble: Callable[[float], AttemptOutcome | None]
    poison: frozenset[str] = frozenset()
    """Sessions whose every request fails."""
    asked: list[tuple[float, str]] = field(default_factory=list)

    def ask(self, sid: str, now: float) -> AttemptOutcome:
        self.asked.append((now, sid))
        return BROKEN if sid in self.poison else self.trouble(now) or OK


@dataclass
class World:
    """Sessions that ask, work a while, and ask again, for as long as it takes: a discrete event simulation over one
    gate.
    """

    endpoint: Endpoint
    sessions: int
    rng: random.Random
    gate: g.Gate = field(default_factory=g.Gate)
    replies: dict[str, list[float]] = field(default_factory=dict)
    questions: int = 0
    poisoned: set[str] = field(default_factory=set)
    """Who was told that only its own request fails; it asks no more."""

    def run(self, until: float) -> None:
        numbers = itertools.count()
        queue: list[tuple[float, int, str, str]] = []

        def at(when: float, what: str, sid: str = "") -> None:
            heapq.heappush(queue, (when, next(numbers), what, sid))

        for i in range(self.sessions):
            at(self.rng.uniform(0, 30), "ask", f"s{i}")
        flights: dict[str, AttemptOutcome] = {}
        alarm = math.inf
        while queue:
            now, _, what, sid = heapq.heappop(queue)
            if now > until:
                break
            if what == "ask" or (what == "ring" and sid in self.gate.line):
                answer = self.gate.may(sid, now)
                if isinstance(answer, g.Go):
                    self.gate.sent(sid, now)
                    outcome = self.endpoint.ask(sid, now)
                    flights[sid] = outcome
                    good = outcome.kind == "ok"
                    if good:
                        at(now + 1, "heard", sid)
                    at(now + (self.rng.uniform(2, 20) if good else self.rng.uniform(0.01, 0.5)), "told", sid)
                elif isinstance(answer, g.Poison):
                    self.questions += 1
                    self.poisoned.add(sid)
            elif what == "heard":
                self.gate.heard(sid, now, self.rng.random())
            elif what == "told":
                outcome = flights.pop(sid)
                self.gate.told(sid, outcome, now, self.rng.random())
                if outcome.kind == "ok":
                    self.replies.setdefault(sid, []).append(now)
                    at(now + self.rng.uniform(0.1, 15), "ask", sid)
                else:
                    at(now, "ask", sid)
            elif what == "alarm" and now == alarm:  # any other was set anew since
                alarm = math.inf
                for ready in self.gate.wake(now):
                    at(now + self.rng.uniform(0, 0.2), "ring", ready)
            self.questions += self.gate.state == g.PERSON
            due = self.gate.due(now)
            if due is not None and due < alarm:
                alarm = max(due, now)
                at(alarm, "alarm")


def overloaded(now: float) -> AttemptOutcome:
    return OVERLOADED


def no_network(now: float) -> AttemptOutcome:
    return REFUSED


def limited(end: float) -> Callable[[float], AttemptOutcome]:
    """429 whose ``retry-after`` tells the truth for the next two minutes, and says nothing when it would be longer."""
    return lambda now: AttemptOutcome(
        AttemptKind.RATE_LIMIT, "slow down", wait_s=end - now if end - now < 120 else None
    )


HOUR = 3600.0
OUTAGES: tuple[tuple[float, float, Callable[[float], AttemptOutcome]], ...] = (
    (300.0, 2100.0, overloaded),
    (2700.0, 4500.0, limited(4500.0)),
    (5100.0, 6900.0, no_network),
)


@pytest.mark.parametrize("seed", range(8))
def test_two_hours_of_trouble_cost_nobody_a_question(seed: int) -> None:
    """30 sessions through half an hour each of 529, 429 and no network: nothing is asked of a person, all go on within
    a minute of each end.
    """

    def trouble(now: float) -> AttemptOutcome | None:
        return next((kind(now) for begin, end, kind in OUTAGES if begin <= now < end), None)

    world = World(Endpoint(trouble), 30, random.Random(seed))
    world.run(2 * HOUR)
    assert world.questions == 0
    for begin, end, _ in OUTAGES:
        during = [at for at, _ in world.endpoint.asked if begin <= at < end]
        later = [at for at in during if at > begin + 40]  # what was on its way as it began is over by then
        assert later, "it is asked again for as long as it takes"
        assert len(later) <= (end - begin) / (g.LONGEST_FREE_S / 2) + 2, "one probe after the other, no more"
        assert all(
            b - a >= g.LONGEST_FREE_S / 2 for a, b in itertools.pairwise([at for at in later if at > begin + 300])
        )
        for i in range(30):
            asked = [at for at, sid in world.endpoint.asked if sid == f"s{i}" and end <= at]
            assert asked, f"s{i} never went on"
            assert asked[0] <= end + 60, f"s{i} went on {asked[0] - end:.0f} s after the end"
        after = sorted(at for at, _ in world.endpoint.asked if end <= at <= end + 60)
        assert all(sum(1 for b in after if a <= b < a + 1.0) <= 8 for a in after), "a herd came through the opened gate"


def test_a_flapping_endpoint_is_never_trampled() -> None:
    """Half a minute up, half a minute down, for two hours: each fall lets in what was on its way and then single
    probes.
    """
    world = World(Endpoint(lambda now: OVERLOADED if now % 60 >= 30 else None), 30, random.Random(1))
    world.run(2 * HOUR)
    assert world.questions == 0
    assert all(len(world.replies[f"s{i}"]) > 50 for i in range(30))
    for minute in range(120):
        struck = [at for at, _ in world.endpoint.asked if minute * 60 + 32 <= at < minute * 60 + 60]
        assert len(struck) <= 16


@pytest.mark.parametrize("outcome", [BROKEN, CUT], ids=["5xx", "cut"])
@pytest.mark.parametrize("share", [0.3, 0.5, 0.7])
@pytest.mark.parametrize("seed", range(3))
def test_an_endpoint_that_fails_at_random_asks_nobody(outcome: AttemptOutcome, share: float, seed: int) -> None:
    """Eight failures in a row are nobody's own while the others fail too: in two hours no session is stopped, and all
    go on.
    """
    rng = random.Random(seed)
    world = World(Endpoint(lambda now: outcome if rng.random() < share else None), 30, random.Random(seed + 100))
    world.run(2 * HOUR)
    assert world.questions == 0
    assert len({sid for at, sid in world.endpoint.asked if at > HOUR}) == 30, "each goes on trying"


@pytest.mark.parametrize(("sessions", "bad"), [(2, 1), (3, 1), (30, 1), (30, 3)])
@pytest.mark.parametrize("seed", range(4))
def test_a_request_that_always_fails_is_found_among_many_or_few(sessions: int, bad: int, seed: int) -> None:
    rng = random.Random(seed)
    poison = frozenset(f"s{i}" for i in range(bad))
    world = World(
        Endpoint(lambda now: BROKEN if rng.random() < 0.01 else None, poison), sessions, random.Random(seed + 100)
    )
    world.run(HOUR)
    assert world.poisoned == poison
    alone = World(Endpoint(lambda now: None), sessions - bad, random.Random(seed + 100))
    alone.run(HOUR)
    got, usual = (sum(map(len, w.replies.values())) / (sessions - bad) for w in (world, alone))
    assert got > 0.8 * usual, "the others hardly notice"
