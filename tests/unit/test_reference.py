"""The pages that are made from the code say what the code says."""

from __future__ import annotations

import pytest

from tests.reference.pages import FOLDER, PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_made_from_the_code_is_up_to_date(name: str) -> None:
    made = PAGES[name]()
    assert (FOLDER / name).read_text("utf-8") == made, f"docs/reference/{name} is out of date: run make reference"


@pytest.mark.parametrize("name", PAGES)
def test_nothing_in_a_table_is_left_without_words(name: str) -> None:
    rows = [line.strip("| ").split(" | ") for line in PAGES[name]().splitlines() if line.startswith("| `")]
    assert len(rows) > 9
    assert not [row for row in rows if not all(cell.strip() for cell in row)]
