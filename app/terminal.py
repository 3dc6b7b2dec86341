"""Whether there is a terminal here that a screen can be drawn on."""

from __future__ import annotations

import os
import sys

_CANNOT_DRAW = ("dumb", "unknown")


def there() -> bool:
    """True when a person's terminal is at both ends: keys come from it and text goes to it."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def lacking() -> str:
    """Why no screen can be shown here, as a sentence's beginning; empty when one can."""
    if not there():
        return "this is not a terminal"
    term = os.environ.get("TERM", "")
    return f"this terminal cannot place text (TERM={term})" if term in _CANNOT_DRAW else ""
