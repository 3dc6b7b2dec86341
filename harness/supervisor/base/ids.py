"""Names of sessions, approvals and decisions."""

from __future__ import annotations

import re
import secrets
import time

from harness.events.work.undo_events import OF_CHECKS

_DIGITS = "0123456789abcdefghijklmnopqrstuv"  # base32hex in lower case: sorts as it counts
_EPOCH_2020 = 1_577_836_800


def _encode(number: int, digits: int) -> str:
    return "".join(_DIGITS[(number >> (5 * i)) & 31] for i in reversed(range(digits)))


def session_id(now: float | None = None) -> str:
    """Ten characters: six of time in seconds, four random."""
    seconds = int((time.time() if now is None else now) - _EPOCH_2020)
    return _encode(max(seconds, 0) & 0x3FFFFFFF, 6) + _encode(secrets.randbits(20), 4)


def approval_id() -> str:
    """``a`` and seven characters."""
    return "a" + _encode(secrets.randbits(35), 7)


def decision_id() -> str:
    """``d`` and nine characters."""
    return "d" + _encode(secrets.randbits(45), 9)


def undo_id() -> str:
    """``u`` and seven characters."""
    return "u" + _encode(secrets.randbits(35), 7)


def restoring_id() -> str:
    """``b`` and seven characters: of an undo of what checks wrote that ran before the work."""
    return OF_CHECKS + _encode(secrets.randbits(35), 7)


def grant_id() -> str:
    """``g`` and seven characters."""
    return "g" + _encode(secrets.randbits(35), 7)


def merge_id() -> str:
    """``m`` and seven characters."""
    return "m" + _encode(secrets.randbits(35), 7)


def pull_id() -> str:
    """``p`` and seven characters."""
    return "p" + _encode(secrets.randbits(35), 7)


def slug(text: str, limit: int = 24) -> str:
    """A short name made of a goal's first words: lower-case ASCII letters, digits and dashes."""
    words = re.findall(r"[a-z0-9]+", text.lower())
    name = ""
    for word in words:
        if name and len(name) + 1 + len(word) > limit:
            break
        name = f"{name}-{word}" if name else word[:limit]
    return name or "session"
