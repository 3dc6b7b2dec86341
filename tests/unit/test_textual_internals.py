"""What is used of Textual's private parts, and which rows are drawn for a paint."""

from __future__ import annotations

import ast
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from textual.geometry import Region

from app.terminal.textual_internals import READ_FROM, bands


@given(st.integers(0, 5), st.integers(0, 12), st.sets(st.integers(0, 20)))
def test_bands_are_the_wanted_rows_of_an_area_and_no_others(top: int, height: int, wanted: set[int]) -> None:
    crop = Region(3, top, 7, height)
    found = list(bands(crop, wanted.__contains__))
    assert [y for band in found for y in band.line_range] == [y for y in crop.line_range if y in wanted]
    assert all(band.height and (band.x, band.width) == (crop.x, crop.width) for band in found)
    assert all(above.bottom < below.y for above, below in pairwise(found))


def test_textual_is_the_version_that_this_was_read_from() -> None:
    assert version("textual") == READ_FROM


def test_nobody_else_imports_what_textual_calls_private() -> None:
    root = Path(__file__).parents[2]
    found: list[str] = []
    for path in (*(root / "app").rglob("*.py"), *(root / "widgets").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            names = [str(node.module)] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            found += [path.stem for name in names if name.startswith(("textual._", "textual.drivers"))]
    assert set(found) == {"textual_internals"}
