"""`docs/reference/exit-codes.md`."""

from __future__ import annotations

from app.cli.base import exits
from tests.reference.markdown import MADE, notes, table


def page() -> str:
    """Every exit code of the command line, with what it means."""
    words = notes(exits)
    codes = {name: value for name, value in vars(exits).items() if name.isupper() and isinstance(value, int)}
    rows = [(f"`{value}`", words[name]) for name, value in sorted(codes.items(), key=lambda one: one[1])]
    return "\n".join(
        ["# Exit codes", "", f"Of every `watchfloor` command. {MADE}", "", *table(("code", "meaning"), rows)]
    )
