"""The ledger in memory: whatever is asked in whatever order, spent and held together never pass a cap."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule

from harness.budget.ledger import Account, CapReached, Ledger, NotReserved
from harness.budget.ledger_types import CapsInForce, Raised, Reserved, Settled, Unknown, decode, to_wire
from harness.domain.cap import Cap

LIMITS = CapsInForce(session_usd=100, session_tokens=90, day_usd=200, day_tokens=180, fleet_usd=500, fleet_tokens=400)


def reserved(
    name: str, sid: str = "s", nano: int = 10, tokens: int = 1, day: str = "2026-01-01", limits: CapsInForce = LIMITS
) -> Reserved:
    return Reserved(
        reservation=name, sid=sid, request_id=name, attempt=1, nano=nano, tokens=tokens, day=day, limits=limits
    )


class LedgerMachine(RuleBasedStateMachine):
    """Compares with a model that keeps a plain list of (sid, day, amount) and knows nothing of accounts."""

    held = Bundle("held")
    doubtful = Bundle("doubtful")

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.model: dict[str, tuple[str, str, int, int]] = {}
        self.log: list[Reserved | Settled | Unknown] = []
        self.count = 0
        self.clock = 1

    @rule(days=st.integers(-3, 2))
    def move_clock(self, days: int) -> None:
        self.clock = min(28, max(1, self.clock + days))

    @rule(target=held, sid=st.sampled_from("abc"), nano=st.integers(0, 60), tokens=st.integers(0, 60))
    def reserve(self, sid: str, nano: int, tokens: int) -> str:
        self.count += 1
        name = f"r{self.count}"
        record = reserved(name, sid, nano, tokens, self.ledger.window(f"2026-01-{self.clock:02d}"))
        before = self.totals()
        try:
            self.ledger.reserve(record)
        except CapReached:
            assert self.totals() == before
            return ""
        self.model[name] = (sid, record.day, nano, tokens)
        self.log.append(record)
        return name

    @rule(name=consumes(held), nano=st.integers(0, 60), tokens=st.integers(0, 60))
    def settle(self, name: str, nano: int, tokens: int) -> None:
        if name:
            self._settle(name, nano, tokens)

    @rule(name=consumes(doubtful), nano=st.integers(0, 60), tokens=st.integers(0, 60))
    def reconcile(self, name: str, nano: int, tokens: int) -> None:
        if name:
            self._settle(name, nano, tokens)

    def _settle(self, name: str, nano: int, tokens: int) -> None:
        sid, day, most, most_tokens = self.model[name]
        record = Settled(reservation=name, nano=min(nano, most), tokens=min(tokens, most_tokens))
        self.ledger.settle(name, record.nano, record.tokens)
        self.model[name] = (sid, day, record.nano, record.tokens)
        self.log.append(record)
        with pytest.raises(NotReserved):
            self.ledger.settle(name, 0, 0)

    @rule(target=doubtful, name=consumes(held))
    def lose(self, name: str) -> str:
        if name:
            self.ledger.mark_unknown(name)
            self.log.append(Unknown(reservation=name))
        return name

    def totals(self) -> dict[str, tuple[int, int]]:
        accounts = {
            "fleet": self.ledger.fleet,
            **{f"s:{k}": v for k, v in self.ledger.sessions.items()},
            **{f"d:{k}": v for k, v in self.ledger.days.items()},
        }
        return {name: (a.nano, a.tokens) for name, a in accounts.items() if a.nano or a.tokens}

    @invariant()
    def the_accounts_add_up_and_no_cap_is_passed(self) -> None:
        expected: dict[str, tuple[int, int]] = {}
        for sid, day, nano, tokens in self.model.values():
            for name in ("fleet", f"s:{sid}", f"d:{day}"):
                a, b = expected.get(name, (0, 0))
                expected[name] = (a + nano, b + tokens)
        assert self.totals() == {k: v for k, v in expected.items() if v != (0, 0)}
        for name, (nano, tokens) in expected.items():
            cap = {"f": (500, 400), "s": (100, 90), "d": (200, 180)}[name[0]]
            assert nano <= cap[0]
            assert tokens <= cap[1]

    @invariant()
    def what_is_of_unknown_outcome_is_told_apart(self) -> None:
        lost = self.ledger.unknown.values()
        assert self.ledger.fleet.unknown_nano == sum(r.nano for r in lost) <= self.ledger.fleet.spent_nano
        assert self.ledger.fleet.unknown_tokens == sum(r.tokens for r in lost)

    @invariant()
    def rows_and_days_and_the_fleet_are_sums_of_the_same_amounts(self) -> None:
        def total(accounts: Iterable[Account]) -> tuple[int, ...]:
            figures = [
                (a.spent_nano, a.held_nano, a.unknown_nano, a.spent_tokens, a.unknown_tokens, a.requests)
                for a in accounts
            ]
            return tuple(map(sum, zip(*figures, strict=True))) if figures else (0,) * 6

        made = self.ledger
        assert total(made.sessions.values()) == total(made.days.values()) == total([made.fleet])
        for day, account in made.days.items():
            assert total(part for (_, of), part in made.parts.items() if of == day) == total([account])

    @invariant()
    def the_window_never_goes_back(self) -> None:
        days = [r.day for r in self.log if isinstance(r, Reserved)]
        assert days == sorted(days)

    def teardown(self) -> None:
        again = Ledger()
        for record in self.log:
            again.apply(record)
        assert (again.fleet, again.open, again.unknown, again.day) == (
            self.ledger.fleet,
            self.ledger.open,
            self.ledger.unknown,
            self.ledger.day,
        )


TestLedger = LedgerMachine.TestCase
TestLedger.settings = settings(max_examples=120, stateful_step_count=40, deadline=None)


@pytest.mark.parametrize(
    ("limits", "cap"),
    [
        (CapsInForce(session_usd=9), "session.usd"),
        (CapsInForce(session_tokens=0), "session.tokens"),
        (CapsInForce(day_usd=9), "day.usd"),
        (CapsInForce(day_tokens=0), "day.tokens"),
        (CapsInForce(fleet_usd=9), "fleet.usd"),
        (CapsInForce(fleet_tokens=0), "fleet.tokens"),
    ],
)
def test_each_cap_is_named_when_it_is_reached(limits: CapsInForce, cap: str) -> None:
    with pytest.raises(CapReached) as caught:
        Ledger().reserve(reserved("r", limits=limits))
    assert caught.value.cap == cap
    assert caught.value.used + caught.value.need > caught.value.limit


def test_a_reservation_exactly_at_the_cap_fits() -> None:
    ledger = Ledger()
    ledger.reserve(reserved("r", limits=CapsInForce(session_usd=10, fleet_usd=10)))
    with pytest.raises(CapReached):
        ledger.reserve(reserved("q", nano=1, limits=CapsInForce(session_usd=10)))


def test_a_clock_that_goes_back_opens_no_old_day() -> None:
    ledger = Ledger()
    ledger.reserve(reserved("r", day=ledger.window("2026-01-05")))
    assert ledger.window("2026-01-03") == "2026-01-05"


def test_a_raised_day_cap_holds_for_that_day_and_that_configuration() -> None:
    ledger = Ledger()
    ledger.apply(Raised(cap="day.usd", limit=300, base=200, day="2026-01-05"))
    assert ledger.limit(Cap.DAY_USD, 200, "2026-01-05") == 300
    assert ledger.limit(Cap.DAY_USD, 200, "2026-01-06") == 200
    assert ledger.limit(Cap.DAY_USD, 150, "2026-01-05") == 150
    ledger.apply(Raised(cap="fleet.usd", limit=900, base=500, day="2026-01-05"))
    assert ledger.limit(Cap.FLEET_USD, 500, "2026-02-01") == 900
    assert ledger.limit(Cap.FLEET_USD, None, "2026-02-01") is None


def test_records_survive_the_wire_and_newer_types_are_skipped() -> None:
    import json

    for record in (
        reserved("r"),
        Settled(reservation="r", nano=1, tokens=2),
        Unknown(reservation="r"),
        Raised(cap="day.usd", limit=2, base=1, day="d"),
    ):
        kind, data = to_wire(record)
        assert decode(json.dumps({"v": 1, "seq": 0, "type": kind, "data": data}).encode()) == record
    assert decode(b'{"type":"ledger.audited","data":{}}') is None
