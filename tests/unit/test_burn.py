"""How fast money goes, as the footer says it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from widgets.base.spend_rate import Burn

HOUR = 3600


def test_nothing_is_said_before_a_minute_was_seen_nor_while_nothing_is_spent() -> None:
    burn = Burn()
    burn.note(5, 1000.0)
    burn.note(9, 1030.0)
    assert burn.per_hour(1030.0) is None
    assert burn.per_hour(1061.0) == 4 * HOUR // 61
    quiet = Burn()
    quiet.note(5, 0.0)
    quiet.note(5, 120.0)
    assert (quiet.per_hour(120.0), quiet.spark(120.0)) == (0, "")


def test_bars_show_the_last_minutes_and_midnight_takes_nothing_away() -> None:
    burn = Burn()
    for minute, total in enumerate((0, 100, 100, 300, 0, 50)):
        burn.note(total, 60.0 * minute)
    assert burn.spark(300.0, 5) == "▄▁█▁▂"


@given(st.lists(st.tuples(st.integers(0, 10**9), st.floats(0, 90)), max_size=60))
def test_the_rate_is_never_more_than_what_was_spent_in_the_last_ten_minutes(steps: list[tuple[int, float]]) -> None:
    burn = Burn()
    now = 1000.0
    total = 0
    for more, wait in steps:
        burn.note(total, now)
        total += more
        now += wait
    rate = burn.per_hour(now)
    assert rate is None or 0 <= rate <= total * 60
    assert len(burn.spark(now)) in (0, 5)
