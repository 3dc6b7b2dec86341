"""Money from the logs: whatever happens to a ledger, no sum of it goes down, and all its sums stay sums of the same
requests.
"""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.budget import prices
from harness.budget.evidence import NEVER_SENT, Books, Evidence, missing
from harness.budget.ledger import CapReached, Ledger
from harness.budget.ledger_types import CapsInForce, LedgerRecord, Raised, Reserved, Settled, Unknown
from harness.domain.cap import Cap
from harness.events import types as t
from harness.supervisor.money.cap_waits import Waiting, freed
from harness.supervisor.money.figures import CapStanding

MODEL = "claude-haiku-5-5"
LIMITS = CapsInForce(day_usd=6_000_000, fleet_usd=20_000_000)
USAGE = t.Usage(input=100, cache_read=900, output=50)
PAID = prices.cost(MODEL, USAGE)


def held(name: str, sid: str, day: str) -> Reserved:
    worst = prices.worst_case(MODEL, 1000, 1000)
    return Reserved(
        reservation=name,
        sid=sid,
        request_id=name,
        attempt=1,
        nano=worst.nano,
        tokens=worst.tokens,
        day=day,
        model=MODEL,
        limits=LIMITS,
    )


def record(sid_seq: int, body: t.Body, day: str) -> t.Record:
    return t.Record(sid_seq, f"{day}T12:00:00.{sid_seq % 1000:03d}Z", "test", 0, body)


def sums(ledger: Ledger) -> tuple[tuple[int, ...], ...]:
    def of(accounts: object) -> tuple[int, ...]:
        found = list(accounts)  # type: ignore[call-overload]
        return tuple(
            sum(getattr(a, n) for a in found)
            for n in ("spent_nano", "spent_tokens", "held_nano", "held_tokens", "requests")
        )

    return of(ledger.sessions.values()), of([ledger.fleet]), of(ledger.days.values()), of(ledger.parts.values())


STEPS = st.lists(
    st.tuples(
        st.sampled_from("abc"),
        st.integers(1, 3),
        st.sampled_from(["paid", "unknown", "failed", "open", "unsent", "raise"]),
    ),
    min_size=1,
    max_size=25,
)


@settings(max_examples=150, deadline=None)
@given(steps=STEPS, keep=st.floats(0, 1), removed=st.sampled_from(["", "a", "ab"]), anchored=st.booleans())
def test_a_ledger_cut_anywhere_is_completed_from_the_logs(
    steps: list[tuple[str, int, str]], keep: float, removed: str, anchored: bool
) -> None:
    """Any prefix of the ledger is left (also nothing); some sessions are gone, and then the anchor remembers them."""
    ledger = Ledger()
    written = list[LedgerRecord]()
    logs = {s: Evidence(s) for s in "abc"}
    day = 1
    for number, (sid, later, what) in enumerate(steps):
        day = max(day, later)
        date = f"2026-01-{day:02d}"
        name = f"r{number}"
        if what == "raise":
            made = Raised(cap="day.usd", limit=7_000_000 + number, base=6_000_000, day=date, decision=f"d{number}")
            body = t.CapsRaised(
                caps=t.Caps(), cap=made.cap, limit=made.limit, base=made.base, day=made.day, decision_id=made.decision
            )
            logs[sid].take(record(number, body, date))
            ledger.apply(made)
            written.append(made)
            continue
        one = held(name, sid, date)
        try:
            ledger.reserve(one)
        except CapReached:
            continue
        written.append(one)
        if what == "unsent":
            continue
        sent = t.ModelRequest(
            request_id=name,
            attempt=1,
            model=MODEL,
            reservation=name,
            reserved_nano=one.nano,
            est_input=1000,
            max_tokens=1000,
            upto_seq=0,
        )
        logs[sid].take(record(number, sent, date))
        end: Settled | Unknown | None = None
        if what == "paid":
            end = Settled(reservation=name, nano=PAID.nano, tokens=PAID.tokens, usage=USAGE)
            reply = t.ModelMessage(
                request_id=name, message_id="m", model=MODEL, stop="done", usage=USAGE, cost_nano=PAID.nano
            )
            logs[sid].take(record(number, reply, date))
        elif what == "failed":
            end = Settled(reservation=name, nano=0, tokens=0, usage=t.Usage())
            logs[sid].take(
                record(
                    number,
                    t.ModelFailed(request_id=name, attempt=1, kind="overloaded", message="", usage=t.Usage()),
                    date,
                )
            )
        elif what == "unknown":
            end = Unknown(reservation=name)
            logs[sid].take(record(number, t.ModelFailed(request_id=name, attempt=1, kind="cut", message=""), date))
        if end is not None:
            ledger.apply(end)
            written.append(end)
    assert len(set(sums(ledger))) == 1

    least = {key: (a.spent_nano, a.spent_tokens) for key, a in ledger.parts.items()} if anchored or removed else {}
    cut = written[: int(len(written) * keep)]
    again = Ledger()
    for each in cut:
        again.apply(each)
    known = {r.reservation for r in cut if isinstance(r, Reserved)}
    decided = {r.decision for r in cut if isinstance(r, Raised)}
    spent = {key: (a.spent_nano, a.spent_tokens) for key, a in again.parts.items()}
    there = [log for sid, log in logs.items() if sid not in removed]
    for each in missing(Books(known, dict(again.open), decided, spent), there, least):
        again.apply(each)

    assert len(set(sums(again))) == 1
    open_then = {r.reservation for r in ledger.open.values()}
    for sid in "abc":
        then = ledger.sessions.get(sid)
        now = again.sessions.get(sid)
        if then is None:
            continue
        assert now is not None or not then.spent_nano
        if now is None:
            continue
        assert now.spent_nano >= then.spent_nano
        # never more than if every request that was open then counted in full
        if sid in removed:
            assert now.spent_nano == then.spent_nano or then.spent_nano == 0
            continue
        assert now.nano <= then.nano + sum(r.nano for r in ledger.open.values() if r.sid == sid)
        if not open_then:
            assert (now.spent_nano, now.spent_tokens, now.requests) == (
                then.spent_nano,
                then.spent_tokens,
                then.requests,
            )
    if not removed:
        assert {c: r.limit for c, r in again.raised.items()} == {c: r.limit for c, r in ledger.raised.items()}


def test_only_what_was_never_sent_is_free() -> None:
    log = Evidence("a")
    sent = t.ModelRequest(
        request_id="q",
        attempt=1,
        model=MODEL,
        reservation="sent",
        reserved_nano=9,
        est_input=1,
        max_tokens=1,
        upto_seq=0,
    )
    log.take(record(1, sent, "2026-01-01"))
    assert log.settlement(held("unsent", "a", "2026-01-01")) == Settled(
        reservation="unsent", nano=0, tokens=0, source=NEVER_SENT, sent=False
    )
    assert log.settlement(held("sent", "a", "2026-01-01")) == Unknown(reservation="sent")
    log.whole = False  # what the damaged part said of it, nobody knows
    assert log.settlement(held("unsent", "a", "2026-01-01")) == Unknown(reservation="unsent")


def test_a_cost_that_nobody_could_settle_is_taken_from_its_usage() -> None:
    log = Evidence("a")
    one = held("r", "a", "2026-01-01")
    sent = t.ModelRequest(
        request_id="q",
        attempt=1,
        model=MODEL,
        reservation="r",
        reserved_nano=one.nano,
        est_input=1,
        max_tokens=1,
        upto_seq=0,
    )
    reply = t.ModelMessage(
        request_id="q",
        message_id="m",
        model=MODEL,
        stop="done",
        usage=USAGE,
        cost_nano=one.nano,
        price_source="reserved",
    )
    log.take(record(1, sent, "2026-01-01"))
    log.take(record(2, reply, "2026-01-01"))
    end = log.settlement(one)
    assert isinstance(end, Settled)
    assert (end.nano, end.tokens) == (PAID.nano, PAID.tokens)
    late = t.ModelSettled(
        request_id="q", reservation="r", usage=USAGE, cost_nano=PAID.nano + 7, recorded_nano=one.nano, price_source="x"
    )
    log.take(record(3, late, "2026-01-01"))
    end = log.settlement(one)
    assert isinstance(end, Settled)
    assert end.nano == PAID.nano + 7, "prices may have changed since: a lost ledger is made as it was"


@pytest.mark.parametrize(("source", "nano"), [("list", 5), ("reserved", PAID.nano), ("", PAID.nano)])
def test_a_failed_attempt_costs_in_a_ledger_made_anew_what_its_log_says_it_did(source: str, nano: int) -> None:
    log = Evidence("a")
    one = held("r", "a", "2026-01-01")
    sent = t.ModelRequest(
        request_id="q", attempt=1, model=MODEL, reservation="r", reserved_nano=9, est_input=1, max_tokens=1, upto_seq=0
    )
    failed = t.ModelFailed(
        request_id="q", attempt=1, kind="max_tokens", message="", usage=USAGE, cost_nano=5, price_source=source
    )
    log.take(record(1, sent, "2026-01-01"))
    log.take(record(2, failed, "2026-01-01"))
    end = log.settlement(one)
    assert isinstance(end, Settled)
    assert end.nano == nano


def waits(name: str, cap: str = "day.usd", limit: int = 100, need: int = 10, day: str = "2026-01-01") -> Waiting:
    return Waiting(name, Cap(cap), limit, need, day, f"2026-01-01T00:00:0{name[-1]}Z")


@pytest.mark.parametrize(
    ("used", "limit", "day", "free"),
    [
        (95, 100, "2026-01-01", []),
        # room from settlements alone frees nobody: it would be asked for again with every reply
        (0, 100, "2026-01-01", []),
        (95, 105, "2026-01-01", ["a1"]),
        (95, 200, "2026-01-01", ["a1", "a2", "a3"]),
        (95, 104, "2026-01-01", []),
        (0, 100, "2026-01-02", ["a1", "a2", "a3"]),
        (0, 25, "2026-01-02", ["a1", "a2"]),
        (95, None, "2026-01-01", ["a1", "a2", "a3"]),
    ],
)
def test_who_goes_on_when_a_cap_or_a_day_changed(used: int, limit: int | None, day: str, free: list[str]) -> None:
    found = freed([waits("a2"), waits("a1"), waits("a3")], lambda cap: CapStanding(used, limit, day))
    assert sorted(found) == free


def test_another_day_is_nothing_to_a_cap_of_the_fleet() -> None:
    assert freed([waits("a1", cap="fleet.usd")], lambda cap: CapStanding(95, 100, "2026-01-09")) == {}
