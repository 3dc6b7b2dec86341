"""How wide characters are, against the tables that terminals and our screen's library really use."""

from __future__ import annotations

import ctypes
import locale
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import get_character_cell_size

from app.terminal.cell_table import placed
from harness.domain.text.cell_width import agreed, cells, clusters, readings
from harness.domain.text.display_safe import exact_cells, to_display

THUMB = "\U0001f44d\U0001f3ff"
HANGUL = "\uac00\u302e"
DEVANAGARI = "\u0915\u093f"


def shown() -> list[str]:
    """Every character that display text leaves as it is."""
    codes = (code for code in range(0x20, 0x110000) if not 0xD800 <= code < 0xE000)
    return [ch for ch in map(chr, codes) if to_display(ch) == ch]


def tables(ch: str) -> set[int]:
    """Cells by glibc (where it knows the character), by Rich's table and by the class of East Asian width alone."""
    by_class = 2 if unicodedata.east_asian_width(ch) in "WF" else 1
    by_libc = ctypes.CDLL(None).wcwidth(ord(ch))
    named = {by_libc} if by_libc >= 0 else set()
    return named | {get_character_cell_size(ch)} | (set() if unicodedata.category(ch) in ("Mn", "Me") else {by_class})


@pytest.mark.slow
def test_every_table_lies_within_the_readings_and_agrees_where_they_do() -> None:
    before = locale.setlocale(locale.LC_CTYPE)
    locale.setlocale(locale.LC_CTYPE, "C.UTF-8")
    try:
        wrong = [(hex(ord(ch)), tables(ch), readings(ch)) for ch in shown() if not tables(ch) <= set(span(ch))]
    finally:
        locale.setlocale(locale.LC_CTYPE, before)
    assert not wrong


def span(ch: str) -> range:
    fewest, most = readings(ch)
    return range(fewest, most + 1)


@pytest.mark.parametrize("unit", [THUMB, HANGUL, DEVANAGARI, "\U0001f1e6", "\u1100\u1161\u11a8", "\uff76\uff9e"])
def test_what_terminals_count_differently_becomes_a_mark_on_a_card(unit: str) -> None:
    text = exact_cells(to_display(unit * 28 + " ; touch PWNED"))
    assert all(map(agreed, text))
    assert f"U+{ord(unit[-1]):04X}" in text


def test_ordinary_words_stay_readable_on_a_card() -> None:
    for words in ("naïve Straße", "привет, мир", "日本語のテスト", "안녕하세요", "✓ done", "👍", "ภาษาไทย"):
        assert exact_cells(to_display(words)) == words


@given(st.text())
def test_a_card_counts_every_text_as_every_terminal_does_and_no_two_alike(text: str) -> None:
    shown_text = exact_cells(to_display(text))
    assert all(map(agreed, shown_text))
    assert exact_cells(shown_text) == shown_text


@given(st.text(alphabet=st.characters(exclude_categories=["Cc", "Cs", "Cf", "Zl", "Zp"])))
def test_pieces_are_the_text_and_what_is_placed_holds_every_piece(text: str) -> None:
    assert "".join(clusters(text)) == text
    bare = placed(text)
    for piece in clusters(text):
        assert piece in bare or placed(piece[0]) == piece[0], "only what every terminal draws alike may stand apart"


def test_what_a_terminal_reads_for_itself_is_left_alone() -> None:
    title = f"\x1b]2;{THUMB}\x07"
    assert placed(title) == title
    assert placed("plain \x1b[1mtext\x1b[0m │ ✓") == "plain \x1b[1mtext\x1b[0m │ ✓"


def test_room_is_kept_for_the_widest_reading() -> None:
    assert [cells(text) for text in (THUMB, HANGUL, DEVANAGARI, "é", "漢")] == [4, 4, 2, 1, 2]
    assert placed(f"{DEVANAGARI}x") == f"\x1b7  \x1b8{DEVANAGARI}\x1b8\x1b[2Cx"
