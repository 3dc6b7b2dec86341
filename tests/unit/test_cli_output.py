"""Tables of the command line: aligned and cut by what a terminal shows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from app.cli.base.output import table, wrapped

WORDS = st.text(alphabet="ab …é日本語e\u0301ｗ✓", max_size=30)


@given(rows=st.lists(st.tuples(WORDS, WORDS, WORDS), max_size=5), width=st.integers(8, 120))
def test_columns_begin_where_they_begin_whatever_is_in_them(rows: list[tuple[str, str, str]], width: int) -> None:
    lines = table(("A", "B", "C"), [(f"<{a}", f"<{b}", f"<{c}") for a, b, c in rows], width=1000)
    places = {
        (cell_len(line[: line.index("<", 1)]), cell_len(line[: line.index("<", line.index("<", 1) + 1)]))
        for line in lines[1:]
    }
    assert len(places) <= 1
    cut = table(("A",), [(a,) for a, _, _ in rows], width=width)
    assert all(cell_len(line) <= width for line in cut)


def test_what_is_left_out_is_marked_and_nothing_else_is() -> None:
    assert table(("A",), [("日本語",), ("abc",)], width=7)[1:] == ["  日本…", "  abc"]


@given(words=st.lists(WORDS.filter(str.split), min_size=1, max_size=20), width=st.integers(40, 120))
def test_a_line_is_broken_between_words_alone(words: list[str], width: int) -> None:
    line = "  " + " ".join(words)
    pieces = wrapped(line, width, 4)
    assert [word for piece in pieces for word in piece.split()] == line.split()
    assert all(cell_len(piece) <= width for piece in pieces if len(piece.split()) > 1)
    assert all(piece.startswith("    ") for piece in pieces[1:])
    assert wrapped(line, 10_000, 4) == [line.rstrip()]
