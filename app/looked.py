"""When this person last looked at what happened: one time, kept beside the fleet, so that every screen and every
briefing goes on from it.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from harness.events.words import parse_ts

FILE = "looked"
_MOST = 40


def last(state: Path) -> str:
    """The time, as records carry it; empty when nobody looked yet, or what is there is no time."""
    try:
        with (state / FILE).open(encoding="utf-8") as file:
            text = file.read(_MOST).strip()
    except (OSError, ValueError):
        return ""
    return text if parse_ts(text) is not None else ""


def remember(state: Path, ts: str) -> None:
    """Keep the time, where that is possible: whole or not at all."""
    part = state / f".{FILE}.{os.getpid()}"
    with contextlib.suppress(OSError):
        part.write_text(ts + "\n", "utf-8")
        part.replace(state / FILE)
