"""When a person is called: held against every course of things that come and go, on a clock of our own."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.domain.calls.approval_kind import Request
from harness.views import notifications
from harness.views.notifications import Memory, Notice, Pacing, Want

PACING = Pacing(dwell_s=20, cool_down_s=60, again_s=300)
LOW = Want("a1", "fix-login", "question")
HIGH = Want("a2", "ship", "tool", "high")

STEPS = st.lists(
    st.tuples(
        st.integers(1, 90),
        st.sets(st.sampled_from(("a1", "a2", "a3", "a4"))),
        st.sets(st.sampled_from(("a1", "a2", "a3", "a4")), max_size=1),
        st.booleans(),
    ),
    max_size=60,
)


def wanted(ident: str, put_off: bool) -> Want:
    return Want(ident, ident, "tool", "critical" if ident == "a4" else "low", put_off)


def course(*looks: tuple[float, list[Want], bool], pacing: Pacing = PACING) -> list[tuple[float, Notice]]:
    memory = Memory()
    said = []
    for now, wants, watched in looks:
        memory, notice = notifications.decide(memory, wants, now, watched, pacing)
        if notice is not None:
            said.append((now, notice))
    return said


def every(seconds: int, upto: int, wants: list[Want], watched: bool = False) -> list[tuple[float, list[Want], bool]]:
    return [(1000.0 + at, wants, watched) for at in range(0, upto, seconds)]


@given(STEPS)
def test_notices_keep_their_distance_and_name_only_what_waits_unseen(
    steps: list[tuple[int, set[str], set[str], bool]],
) -> None:
    memory = Memory()
    now = 1000.0
    spoke = 1000.0
    since: dict[str, float] = {}
    begun = False
    for gap, there, put_off, watched in steps:
        now += gap
        waiting = there - put_off
        since = {ident: since.get(ident, now) for ident in waiting}
        wants = [wanted(ident, ident in put_off) for ident in sorted(there)]
        before = memory
        memory, notice = notifications.decide(memory, wants, now, watched, PACING)
        if notice is None:
            continue
        assert not watched
        assert not begun or now - spoke >= PACING.cool_down_s
        begun = True
        spoke = now
        named = {want.ident for want in notice.items}
        assert named
        assert named <= waiting
        for ident in named:
            told = before.items.get(ident)
            if told is None or not told.times:
                assert now - since[ident] >= PACING.dwell_s
            else:
                assert ident == "a4"
                assert now - told.last >= PACING.again_s
        assert notice.urgent == ("a4" in named)


@given(STEPS)
def test_what_waits_unseen_is_named_in_the_end_and_once(steps: list[tuple[int, set[str], set[str], bool]]) -> None:
    """Whatever was before, also a clock that was set back: nothing that stays is forgotten, and nothing harmless is
    named twice.
    """
    memory = Memory()
    now = 1_000_000.0
    for gap, there, put_off, watched in steps:
        now += gap
        memory, _ = notifications.decide(memory, [wanted(i, i in put_off) for i in there], now, watched, PACING)
    now -= 500_000
    fresh = Want("new", "new", "question")
    named = 0
    for _ in range(40):
        now += 10
        memory, notice = notifications.decide(memory, [fresh], now, False, PACING)
        named += notice is not None and fresh in notice.items
    assert named == 1


def test_what_is_gone_before_the_dwell_says_nothing() -> None:
    assert course(*every(1, 19, [LOW]), (1019.0, [], False), *((1030.0 + n, [LOW], False) for n in range(19))) == []


def test_several_things_are_one_notice_and_the_next_waits_for_the_cool_down() -> None:
    said = course(
        *every(1, 25, [LOW, HIGH]), *((1025.0 + n, [LOW, HIGH, Want("a3", "x", "cap")], False) for n in range(90))
    )
    assert [(at, [w.ident for w in notice.items]) for at, notice in said] == [(1020.0, ["a1", "a2"]), (1080.0, ["a3"])]


def test_only_what_is_risky_is_said_again_each_time_later() -> None:
    said = course(*every(10, 2400, [LOW, HIGH]))
    assert [at - 1000 for at, _ in said] == [20, 320, 920, 2120]
    assert [notice.again for _, notice in said] == [False, True, True, True]
    assert all(notice.items == (HIGH,) for _, notice in said[1:])
    assert "still needs you" in notifications.title(said[1][1])
    never = Pacing(20, 60, None)
    assert len(course(*every(10, 2400, [LOW, HIGH]), pacing=never)) == 1


def test_watching_mutes_and_what_was_seen_long_enough_is_not_said_afterwards() -> None:
    seen = every(1, 60, [LOW, HIGH], watched=True)
    assert course(*seen, *((1060.0 + n, [LOW, HIGH], False) for n in range(250))) == []
    late = course(*seen, *((1060.0 + n, [LOW, HIGH], False) for n in range(310)))
    assert [[w.ident for w in notice.items] for _, notice in late] == [["a2"]], "the risky one comes again"
    glanced = every(1, 5, [LOW], watched=True)
    assert len(course(*glanced, *((1005.0 + n, [LOW], False) for n in range(30)))) == 1


def test_what_a_person_put_off_is_silent_and_waits_anew_when_it_comes_back() -> None:
    off = Want("a2", "ship", "tool", "high", put_off=True)
    assert course(*every(10, 5000, [off])) == []
    back = course(*every(10, 500, [off]), *((1500.0 + n, [HIGH], False) for n in range(30)))
    assert [at for at, _ in back] == [1520.0]


def test_what_flickers_is_named_once() -> None:
    looks = [(1000.0 + at, [LOW] if at < 25 or at % 20 < 10 else [], False) for at in range(600)]
    assert len(course(*looks)) == 1


def test_a_machine_that_slept_does_not_say_everything_again() -> None:
    assert len(course(*every(1, 30, [LOW]), (90_000.0, [LOW], False), (90_100.0, [LOW], False))) == 1


def test_the_words_name_session_and_kind_and_are_few() -> None:
    many = Notice((*(Want(f"a{n}", f"s{n}", "cap") for n in range(9)), HIGH), True, False)
    assert notifications.title(many) == "Watchfloor: 10 things need you"
    assert notifications.lines(many)[0] == "ship: asks to do something (high risk)"
    assert notifications.lines(many)[-1] == "and 5 more"
    assert len(notifications.lines(many)) == 6
    assert notifications.title(Notice((LOW,), False, False)) == "Watchfloor: 1 thing needs you"
    assert "wants a look" in notifications.lines(Notice((Want("a9", "x", "\x1b]0;pwned\x07"),), False, False))[0]


@pytest.mark.parametrize("kind", list(Request))
def test_every_kind_of_request_has_words(kind: Request) -> None:
    assert notifications.KINDS[kind]
