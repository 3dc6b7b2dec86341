"""Any text in pieces: going on as the last line says shows everything once, and nothing is too wide for an answer."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.executor import paging

ROOM = 8000
MORE = re.compile(r"\(lines (\d+) to (\d+) of (\d+)(?:; go on with offset (\d+))?\)")
LINES = st.lists(st.text(st.characters(exclude_characters="\n", exclude_categories=["Cs"]), max_size=60), max_size=80)


def read_all(text: str, most: int, room: int) -> list[str]:
    """Every piece as it is shown, following the last line of each page."""
    found: list[str] = []
    first = 1
    while True:
        page = paging.page(text, first, most, room)
        assert len(page.encode()) <= room + 160
        *shown, last = page.split("\n")
        said = MORE.fullmatch(last)
        found += shown if said else [*shown, last]
        if said is None or not said[4]:
            return [line.split("\t", 1)[1] for line in found]
        assert int(said[1]) == first
        first = int(said[4])


@given(LINES, st.integers(1, 50), st.integers(1000, ROOM))
def test_going_on_shows_every_line_once(lines: list[str], most: int, room: int) -> None:
    text = "".join(line + "\n" for line in lines)
    if text:
        assert read_all(text, most, room) == lines


@pytest.mark.parametrize("letter", ["x", "é", "\U0001f980"])
def test_a_line_without_end_comes_in_pieces(letter: str) -> None:
    text = letter * 20_000
    assert "".join(read_all(text, 2000, ROOM)) == text


def test_five_megabytes_come_in_an_answer_of_eight_kilobytes() -> None:
    text = "".join(f"line {n} of the log\n" for n in range(1, 250_001))
    page = paging.page(text, 200_000, 2000, ROOM)
    assert page.startswith("200000\tline 200000 of the log\n")
    assert re.search(r"\(lines 200000 to \d+ of 250000; go on with offset \d+\)$", page)
    assert len(page.encode()) < ROOM + 160


def test_grep_numbers_what_it_finds_as_pages_do() -> None:
    text = "one\n" + "a" * 5000 + "NEEDLE" + "b" * 5000 + "\nlast needle\n"
    found = paging.grep(text, "(?i)needle", 1, 10, ROOM)
    first, second = found.split("\n")
    number = int(first.split("\t")[0])
    assert "NEEDLE" in paging.page(text, number, 1, ROOM)
    assert "NEEDLE" in first
    assert len(first) < 500
    assert second.endswith("\tlast needle")


@given(LINES, st.integers(1, 9))
def test_grep_goes_on_where_it_says(lines: list[str], most: int) -> None:
    text = "".join(line + "\n" for line in lines)
    wanted = [n for n, line in enumerate(lines, 1) if "a" in line]
    found: list[int] = []
    first = 1
    while wanted:
        answer = paging.grep(text, "a", first, most, ROOM).split("\n")
        more = re.fullmatch(r"\((\d+) more lines match; go on with offset (\d+)\)", answer[-1])
        found += [int(line.split("\t")[0]) for line in (answer[:-1] if more else answer)]
        if more is None:
            break
        assert int(more[1]) == len(wanted) - len(found)
        first = int(more[2])
    assert found == wanted


def test_what_cannot_be_shown_is_said() -> None:
    assert paging.page("", 1, 10, ROOM) == "(the output is empty)"
    with pytest.raises(paging.NoSuchPage, match="only 2 lines; offset 9"):
        paging.page("a\nb\n", 9, 10, ROOM)
    with pytest.raises(paging.NoSuchPage, match=r"no line of the output matches$"):
        paging.grep("a\n", "b", 1, 10, ROOM)
    with pytest.raises(paging.NoSuchPage, match="from line 2 on; 1 before"):
        paging.grep("b\na\n", "b", 2, 10, ROOM)
    with pytest.raises(paging.NoSuchPage, match="not a valid regular expression"):
        paging.grep("a\n", "(", 1, 10, ROOM)
