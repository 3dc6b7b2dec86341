"""What the harness runs on its own account: the kinds of chores. Pure, standard library only."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

SETUP = "setup"
COMMIT = "commit"


def subject(given: Mapping[str, object]) -> str:
    """The title of what it commits; empty when it does something else."""
    if given.get("chore") != COMMIT:
        return ""
    try:
        said = shlex.split(str(given.get("command", "")))
        return f"commit: {said[said.index('-m') + 1]}"
    except (ValueError, IndexError):
        return ""
