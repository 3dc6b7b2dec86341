"""Which rows are drawn for a paint."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st
from textual.geometry import Region

from app.terminal.painting import bands


@given(st.integers(0, 5), st.integers(0, 12), st.sets(st.integers(0, 20)))
def test_bands_are_the_wanted_rows_of_an_area_and_no_others(top: int, height: int, wanted: set[int]) -> None:
    crop = Region(3, top, 7, height)
    found = list(bands(crop, wanted.__contains__))
    assert [y for band in found for y in band.line_range] == [y for y in crop.line_range if y in wanted]
    assert all(band.height and (band.x, band.width) == (crop.x, crop.width) for band in found)
    assert all(above.bottom < below.y for above, below in pairwise(found))
