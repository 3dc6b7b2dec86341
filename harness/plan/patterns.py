"""Patterns over paths relative to the top of a repository, as `[ratchet]` has them. Pure.

``*`` and ``?`` stay within one name, ``**`` spans folders; a pattern without a slash means a name in any folder; one
that fits a folder fits all that is in it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable


@functools.lru_cache(maxsize=64)
def _compiled(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"(?:{_expression(pattern)})" for pattern in patterns), re.DOTALL)


def _expression(pattern: str) -> str:
    text = pattern.removeprefix("./").strip("/")
    anywhere = "/" not in text
    made: list[str] = []
    for piece in re.split(r"(\*\*/|\*\*|\*|\?)", text):
        match piece:
            case "**/":
                made.append("(?:.*/)?")
            case "**":
                made.append(".*")
            case "*":
                made.append("[^/]*")
            case "?":
                made.append("[^/]")
            case _:
                made.append(re.escape(piece))
    return ("(?:.*/)?" if anywhere else "") + "".join(made) + "(?:/.*)?"


def fits(path: str, patterns: Iterable[str]) -> bool:
    """True when one of the patterns means this path or a folder above it."""
    known = tuple(patterns)
    return bool(known) and _compiled(known).fullmatch(path) is not None


def problem(pattern: str) -> str:
    """Why a pattern cannot be used, in words; empty when it can."""
    if not pattern.strip("/ "):
        return "a pattern must name something"
    if pattern.startswith("/") or ".." in pattern.split("/") or "\0" in pattern:
        return f"{pattern!r} must be a path inside the repository"
    return ""
