"""The generated pages by file name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tests.reference import configuration, events, exit_codes, operations

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference"
PAGES: dict[str, Callable[[], str]] = {
    "configuration.md": configuration.page,
    "events.md": events.page,
    "exit-codes.md": exit_codes.page,
    "operations.md": operations.page,
}
