"""Whether there is a terminal here that a screen can be drawn on."""

from __future__ import annotations

import codecs
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
    if term in _CANNOT_DRAW:
        return f"this terminal cannot place text (TERM={term})"
    written = str(getattr(sys.__stderr__, "encoding", ""))  # what the screen is written to
    if codecs.lookup(written or "ascii").name != "utf-8":
        return f"what is written here is {written or 'of no known encoding'} and not UTF-8 (LC_ALL, PYTHONIOENCODING)"
    return ""
