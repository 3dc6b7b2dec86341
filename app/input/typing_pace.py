"""Whether a key that decides was pressed by a hand: not at machine speed, not right after a paste, not together with
other input; and how long news wait behind a key. Pure.
"""

from __future__ import annotations

MACHINE_GAP_S = 0.025
"""Machines type faster than one input in this time, people do not."""
QUIET_S = 1.0
"""For so long after a paste, or after input at machine speed, nothing is decided."""
_BURST = 3
KEY_FIRST_S = 0.05
"""Seconds after a key in which nothing new is shown, so that what the key did is painted first."""
NEWS_S = 0.25
"""Seconds after which news are shown however many keys come."""


def news_after_key(not_before: float, pressed: float, shown: float) -> float:
    """From when on news may be shown, after a key: ``not_before`` held until then, ``shown`` is when news were last."""
    return max(not_before, min(pressed + KEY_FIRST_S, shown + NEWS_S))


class Pace:
    """Times of what was typed, clicked and pasted (seconds, monotonic), in the order in which it arrived.

    `note` and `pasted` are called where input is handled. `newest` may also be moved by the thread that reads the
    terminal: it tells whether something came right behind a key, before that is handled.
    """

    def __init__(self) -> None:
        self.newest = float("-inf")
        self._last = float("-inf")
        self._gap = float("inf")
        self._quiet_from = float("-inf")
        self._paste = False
        self._run: list[str] = []

    @property
    def pressed(self) -> float:
        """When the newest key or click was made, however late it is handled."""
        return self._last

    def arrived(self, when: float) -> None:
        """Something that can be pressed, clicked or pasted arrived."""
        self.newest = max(self.newest, when)

    def note(self, name: str, when: float) -> None:
        """A key (by name) or a button was pressed or let go."""
        self.arrived(when)
        self._gap = when - self._last
        self._last = when
        self._run = [*self._run[-_BURST:], name] if self._gap < MACHINE_GAP_S else [name]
        # A key that is held repeats as fast as a machine, but it is one key.
        if len(self._run) > _BURST and len(set(self._run)) > 1:
            self._quiet_from = when
            self._paste = False

    def pasted(self, when: float) -> None:
        """A paste ended."""
        self.arrived(when)
        self._last = when
        self._gap = float("inf")
        self._run = []
        self._quiet_from = when
        self._paste = True

    def refusal(self, key: str) -> str:
        """Why the newest key or click, ``key`` in words, does not decide; empty when it may.

        A refused one starts the wait over.
        """
        if self._last - self._quiet_from < QUIET_S:
            what = "a paste" if self._paste else "fast input"
            self._quiet_from = self._last
            return f"{what} has just ended; wait a second, then press {key} again"
        if self._gap < MACHINE_GAP_S:
            return f"that came faster than a person types; press {key} again"
        return ""

    def crowded(self, key: str) -> str:
        """Why the newest key does not decide after all, asked a moment later: something came right behind it."""
        return f"other input came together with that key; press {key} again" if self.newest > self._last else ""
