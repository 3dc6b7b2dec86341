"""When a decision key counts: only on a card that was shown whole, unchanged, for long enough. Pure."""

from __future__ import annotations

import msgspec

ARM_S = 0.5


class Arming(msgspec.Struct, frozen=True):
    """What is on screen (``key`` names the request, its hash and the screen it is on) and since when it is complete and
    untouched; ``begun``: a part of it was painted by now.
    """

    key: tuple[str, ...] = ()
    since: float | None = None
    begun: bool = True

    def observe(self, key: tuple[str, ...], complete: bool, now: float, *, begun: bool = True) -> Arming:
        """The state after looking at the card at ``now`` (seconds, monotonic): another card or an incomplete one starts
        over.
        """
        if not key or not complete:
            return Arming(key, None, begun)
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
        """True while a part of the card was not on screen yet, which it is to be scrolled to."""
        return bool(self.key) and self.since is None and self.begun

    def armed(self, now: float) -> bool:
        """True when the card has been whole and unchanged for half a second."""
        return self.since is not None and now - self.since >= ARM_S

    def refusal(self, now: float) -> str:
        """Why a decision key does nothing now; empty when it counts."""
        if not self.key:
            return "nothing is selected"
        if self.unread:
            return "not all that decides was on screen yet; scroll on first"
        if not self.armed(now):
            return "the card has only just appeared; look, then press again"
        return ""
