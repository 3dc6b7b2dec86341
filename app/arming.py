"""When a decision key counts: only on a card that was shown whole, unchanged, for long enough. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

ARM_S = 0.5


@dataclass(frozen=True, slots=True)
class Arming:
    """What is on screen (``key`` names the request, its hash and the screen it is on) and since when it is complete and
    untouched.
    """

    key: tuple[str, ...] = ()
    since: float | None = None

    def observe(self, key: tuple[str, ...], complete: bool, now: float) -> Arming:
        """The state after looking at the card at ``now`` (seconds, monotonic): another card or an incomplete one starts
        over.
        """
        if not key or not complete:
            return Arming(key, None)
        if key != self.key or self.since is None:
            return Arming(key, now)
        return self

    def pressed(self, now: float) -> Arming:
        """The state after a decision key that came too early: the wait starts over, so that a held key never
        decides.
        """
        return Arming(self.key, now) if self.since is not None and not self.armed(now) else self

    @property
    def unread(self) -> bool:
        """True while a part of the card was not on screen yet."""
        return bool(self.key) and self.since is None

    def armed(self, now: float) -> bool:
        """True when the card has been whole and unchanged for half a second."""
        return self.since is not None and now - self.since >= ARM_S

    def refusal(self, now: float) -> str:
        """Why a decision key does nothing now; empty when it counts."""
        if not self.key:
            return "nothing is selected"
        if self.unread:
            return "scroll to the end of the card first"
        if not self.armed(now):
            return "the card has only just appeared; look, then press again"
        return ""


def differences(before: dict[str, Any], after: dict[str, Any], prefix: str = "") -> list[str]:
    """``field: old → new`` for every part in which two actions differ, in a fixed order; identities of the call itself
    left out.
    """
    found: list[str] = []
    for name in sorted(before.keys() | after.keys()):
        if not prefix and name in ("call", "ref"):
            continue
        old = before.get(name)
        new = after.get(name)
        if old == new:
            continue
        if isinstance(old, dict) and isinstance(new, dict):
            found += differences(old, new, f"{prefix}{name}.")
        else:
            found.append(f"{prefix}{name}: {_short(old)} → {_short(new)}")
    return found


def _short(value: object) -> str:
    if value is None:
        return "(none)"
    text = " ".join(str(x) for x in value) if isinstance(value, list) else str(value)
    return text if len(text) <= 120 else text[:119] + "…"
