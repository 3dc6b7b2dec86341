"""A screen with a card that is decided about: it arms once all of it was on screen for a while, and not before."""

from __future__ import annotations

import time

from textual.content import Content
from textual.widgets import Static

from app.input.arming import Arming
from app.screens.base import WatchScreen
from widgets.card.approval_card import ApprovalCard

WATCH_S = 0.1
"""Seconds between two looks at the card."""


class CardScreen(WatchScreen):
    """Has one `ApprovalCard` and a foot of fixed height, ``#foot``, that says where the card stands."""

    def __init__(self) -> None:
        super().__init__()
        self.arming = Arming()
        self._armed = False
        self._paged_at = -1
        self._foot = Content("")

    @property
    def card(self) -> ApprovalCard:
        """The card that is decided about."""
        return self.query_one(ApprovalCard)

    def on_screen_resume(self) -> None:
        # A toast would cover lines of the card while they count as shown.
        self.app.clear_notifications()
        super().on_screen_resume()

    def watch_arming(self, *shown: str) -> bool:
        """Advance the arming of the card; ``shown`` names what is on it, nothing when nothing is. False when it cannot
        be seen.
        """
        if not self.app.is_running:
            return False  # the screen is being taken down and has lost its card
        if self.app.screen is not self:
            self.arming = Arming()  # covered by another screen: it appears anew when that closes
            return False
        now = time.monotonic()
        key = (*shown, str(self.card.size)) if shown else ()
        self.arming = self.arming.observe(key, bool(key) and self.card.fully_shown, now, begun=self.card.begun)
        if self._armed != (armed := self.arming.armed(now)):
            self._armed = armed
            self.show_keys()
        return True

    def too_soon(self) -> bool:
        """Check the arming for a key that decides, at the time it was pressed; says why when it does not count."""
        now = time.monotonic() - self.host.input_age()
        why = self.arming.refusal(now)
        self.arming = self.arming.pressed(now)
        if why:
            self.host.tell(why)
        return bool(why)

    def not_armed(self) -> str:
        """Why a key that decides would not count now; empty when it would."""
        return self.arming.refusal(time.monotonic())

    def card_up(self) -> None:
        """One page back."""
        self.card.scroll_page_up(animate=False)

    def card_down(self) -> None:
        """One page per frame: a page that was scrolled past unpainted would never count as shown."""
        if self.card.begun and self._paged_at < self.host.frames:
            self._paged_at = self.host.frames
            self.card.scroll_page_down(animate=False)

    def show_foot(self, said: Content) -> None:
        """Asked ten times a second, and its place is of one size: it is painted when it says something else."""
        if not said.is_same(self._foot):
            self._foot = said
            self.query_one("#foot", Static).update(said, layout=False)
