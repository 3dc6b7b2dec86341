"""When this person last looked at what happened: one time, kept beside the fleet, so that every screen and every
briefing goes on from it; and when the screen was left.
"""

from __future__ import annotations

import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path

from harness.domain.text.formatting import parse_ts

FILE = "looked"
LEFT = "left"
"""When the screen was left last: an absence counts from there."""
_MOST = 40


def last(state: Path) -> str:
    """The time, as records carry it; empty when nobody looked yet, or what is there is no time."""
    return _read(state, FILE)


def remember(state: Path, ts: str) -> None:
    """Keep the time, where that is possible: whole or not at all."""
    _write(state, FILE, ts)


def away(state: Path, after_s: int | None, now: float) -> bool:
    """True when the screen was left at least ``after_s`` seconds ago (0 or None: never); False when it never was."""
    then = parse_ts(_read(state, LEFT))
    return after_s is not None and after_s > 0 and then is not None and now - then >= after_s


def left(state: Path, now: float) -> None:
    """The screen is left now."""
    _write(state, LEFT, datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))


def _read(state: Path, name: str) -> str:
    try:
        with (state / name).open(encoding="utf-8") as file:
            text = file.read(_MOST).strip()
    except (OSError, ValueError):
        return ""
    return text if parse_ts(text) is not None else ""


def _write(state: Path, name: str, ts: str) -> None:
    part = state / f".{name}.{os.getpid()}"
    with contextlib.suppress(OSError):
        part.write_text(ts + "\n", "utf-8")
        part.replace(state / name)
