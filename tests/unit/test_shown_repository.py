"""When what was learnt of a repository may be kept: not while a later change could leave the same times behind."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.workspace.private_git.shown_repository import settled

SECOND = 10**9
FRACTION = st.integers(1, SECOND - 1)
SECONDS = st.integers(1, 4 * 10**9)


@given(SECONDS, FRACTION, st.integers(0, 10 * 10**6))
def test_within_a_tick_of_the_kernel_nothing_is_settled(seconds: int, fraction: int, later: int) -> None:
    newest = seconds * SECOND + fraction
    assert not settled(newest, newest + later)


@given(SECONDS, st.integers(0, 2 * SECOND))
def test_whole_seconds_may_be_every_other_one(seconds: int, later: int) -> None:
    newest = seconds * SECOND
    assert not settled(newest, newest + later)
    assert settled(newest, newest + 2 * SECOND + 1)


@given(SECONDS, FRACTION)
def test_a_file_system_that_keeps_fractions_is_soon_believed(seconds: int, fraction: int) -> None:
    newest = seconds * SECOND + fraction
    assert settled(newest, newest + SECOND // 10)


@given(SECONDS, FRACTION, st.integers(1, 10**12))
def test_times_of_the_future_are_never_settled(seconds: int, fraction: int, ahead: int) -> None:
    began = seconds * SECOND + fraction
    assert not settled(began + ahead, began)
