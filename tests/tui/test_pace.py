"""Pastes are taken out of the input whole, wherever it is cut; and what decides must have been pressed by a hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.input.paste import BEGIN, END, TRAIL_S, Pasted, PasteFilter
from app.input.typing_pace import KEY_FIRST_S, MACHINE_GAP_S, NEWS_S, QUIET_S, Pace, news_after_key

HOSTILE = st.lists(
    st.sampled_from(["x", "\x19", "\x1b", "\x1b[121;5u", "\x1b]0;", "\x1b[<0;5;40M", BEGIN[:3], END[:4], "yes\r"]),
    max_size=8,
).map("".join)


def run(filter_: PasteFilter, pieces: list[str], *, gap: float = 0.0, start: float = 100.0) -> list[str | Pasted]:
    """Everything that comes out, neighbouring texts joined."""
    out: list[str | Pasted] = []
    for number, piece in enumerate(pieces):
        for found in filter_.feed(piece, start + number * gap):
            if isinstance(found, str) and out and isinstance(out[-1], str):
                out[-1] += found
            else:
                out.append(found)
    return out


def typed(found: list[str | Pasted]) -> str:
    return "".join(piece for piece in found if isinstance(piece, str))


@given(HOSTILE, st.data())
def test_wherever_a_paste_is_cut_nothing_of_it_is_typed(content: str, data: st.DataObject) -> None:
    content = content.replace(END, "")
    whole = "a" + BEGIN + content + END
    cuts = sorted(data.draw(st.sets(st.integers(1, len(whole) - 1), max_size=6)))
    pieces = [whole[a:b] for a, b in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    found = run(PasteFilter(), pieces)
    assert [piece.text for piece in found if isinstance(piece, Pasted)] == [content]
    # A lone escape at the end of a read is the escape key to any program; nothing else may come through.
    assert typed(found) in ("a", "a\x1b")


@given(HOSTILE)
def test_what_comes_right_behind_a_paste_is_not_typed_and_a_key_after_a_moment_is(trailer: str) -> None:
    filter_ = PasteFilter()
    found = run(filter_, [BEGIN + "x" + END + trailer.replace(BEGIN, "")])
    assert typed(found) == ""
    assert typed(run(filter_, ["k"], start=100.0 + 3 * TRAIL_S)) == "k"


def test_a_trailer_that_dribbles_in_still_belongs_to_the_paste() -> None:
    filter_ = PasteFilter()
    assert typed(run(filter_, [BEGIN + "x" + END, *"abc\x19def\x19"], gap=TRAIL_S * 0.9)) == ""
    assert filter_.dropped == 8


def test_reports_of_the_terminal_pass_behind_a_paste() -> None:
    reports = "\x1b[<35;10;20M\x1b[I\x1b[?2026;2$y\x1b[48;40;120;800;960t"
    assert typed(run(PasteFilter(), [BEGIN + "x" + END + reports + "\x19\x1b[<0;5;40M"])) == reports


@pytest.mark.parametrize("key", ["\x1b[20~", "\x1b[2~", "\x1b[", "\x1b[2", "\x1b", "\x1b[A", "\x1bx", "\x19"])
def test_keys_that_begin_like_a_paste_arrive_in_full(key: str) -> None:
    filter_ = PasteFilter()
    assert typed([*filter_.feed(key, 1.0), filter_.expire(1.01), filter_.expire(2.0)]) == key


def test_two_pastes_are_two() -> None:
    both = BEGIN + "one" + END + BEGIN + "two" + END
    assert run(PasteFilter(), [both]) == [Pasted("one"), Pasted("two")]


# -- pace ------------------------------------------------------------------------------------------


def pressed(*keys: tuple[str, float]) -> Pace:
    pace = Pace()
    for name, when in keys:
        pace.note(name, when)
    return pace


def test_a_key_at_human_speed_decides() -> None:
    assert not pressed(("ctrl+y", 1.0)).refusal("ctrl+y")
    assert not pressed(("down", 1.0), ("ctrl+y", 1.0 + 2 * MACHINE_GAP_S)).refusal("ctrl+y")
    assert not pressed(("ctrl+y", 1.0)).crowded("ctrl+y")


def test_a_key_at_machine_speed_does_not() -> None:
    assert "faster than a person" in pressed(("down", 1.0), ("ctrl+y", 1.0 + 0.9 * MACHINE_GAP_S)).refusal("ctrl+y")


def test_a_key_with_something_right_behind_it_does_not() -> None:
    pace = pressed(("ctrl+y", 1.0))
    pace.arrived(1.001)
    assert "together with that key" in pace.crowded("ctrl+y")


@given(st.lists(st.floats(0.03, 0.99), min_size=1, max_size=20))
def test_after_a_paste_nothing_decides_until_there_was_a_quiet_second(gaps: list[float]) -> None:
    pace = Pace()
    now = 10.0
    pace.pasted(now)
    for gap in gaps:
        now += gap * QUIET_S
        pace.note("ctrl+y", now)
        assert "a paste has just ended; wait a second, then press ctrl+y again" in pace.refusal("ctrl+y")
    pace.note("ctrl+y", now + QUIET_S + 0.001)
    assert not pace.refusal("ctrl+y")


def test_input_at_machine_speed_counts_as_a_paste_but_a_held_key_does_not() -> None:
    burst = [(key, 1.0 + i * 0.001) for i, key in enumerate("pasted")]
    assert "fast input has just ended" in pressed(*burst, ("ctrl+y", 1.5)).refusal("ctrl+y")
    assert not pressed(*(("down", 1.0 + i * 0.02) for i in range(20)), ("ctrl+y", 1.6)).refusal("ctrl+y")


@given(st.lists(st.floats(0.0, 0.1), max_size=200))
def test_keys_come_before_news_and_never_keep_them_away(gaps: list[float]) -> None:
    """Keys at any pace: news wait for the paint of each, and none is kept back for longer than the bound."""
    now = 100.0
    shown = 100.0
    not_before = 0.0
    for gap in gaps:
        now += gap
        if now >= not_before and now - shown >= 0.04:
            shown = now
        not_before = news_after_key(not_before, now, shown)
        assert not_before <= max(now, shown + NEWS_S)
        assert not_before >= min(now + KEY_FIRST_S, shown + NEWS_S)
