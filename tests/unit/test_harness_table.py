"""The table of rows and tests names tests that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_each_row_is_held_by_a_test_that_exists() -> None:
    table = (ROOT / "docs" / "harness-tests.md").read_text("utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", table)
    assert len(named) == sum(line.startswith("| ") and "`tests/" in line for line in table.split("\n")) > 20
    missing = [
        f"{file}::{name}"
        for file, name in named
        if not re.search(rf"^(?:async )?def {name}\(", (ROOT / file).read_text("utf-8"), re.MULTILINE)
    ]
    assert not missing
