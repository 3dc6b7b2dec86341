"""Requests that are alike, decided at once: one card shows all of them, and each is decided for its own action."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar, NamedTuple

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.widgets import Static

from app.client.snapshot import Dirty, Snapshot
from app.framework.handlers import Handler, Handlers, bindings
from app.input.arming import Arming
from app.screens.dialogs.card_screen import WATCH_S, CardScreen
from app.screens.queue_foot import Looked, armed
from harness.domain.text.display_safe import to_display
from harness.domain.text.formatting import counted
from harness.views.session_views import ApprovalView
from widgets.base.help_bar import HelpBar
from widgets.card.approval_card import ApprovalCard
from widgets.card.group_card import together
from widgets.fleet.fleet_bar import Banner

MOST = 40
"""So many are decided at once at most: more than that nobody reads."""
_NOTICE_S = 10.0


def chosen(view: ApprovalView, group: Sequence[ApprovalView]) -> list[ApprovalView]:
    """The requests of its group that can be decided together with this one, itself first; what is critical never is."""
    others = [one for one in group if one.same and one.action and one.approval_id != view.approval_id]
    return [view, *sorted(others, key=lambda one: one.same != view.same)][:MOST]


def refusal(view: ApprovalView, group: Sequence[ApprovalView]) -> str:
    """Why nothing can be decided at once here; empty when it can."""
    if len(group) > 1 and not view.same:
        return "what is critical is decided one by one"
    if len(group) > 1 and view.action is None:
        return "not all of this request could be sent along; decide it by itself"
    return "" if len(chosen(view, group)) > 1 else "no other open request is the same as this one or like it"


class SeenTogether(NamedTuple):
    """The requests that were on screen, and the hash of the text that showed them."""

    views: tuple[ApprovalView, ...]
    shown: str


class TogetherScreen(CardScreen):
    """Returns what was `SeenTogether`, or nothing.

    Which they are is settled when it opens: none is added, and when one changes or goes the rest is shown anew.
    """

    DEFAULT_CSS = """
    TogetherScreen #together { height: 1fr; padding: 0 1; }
    TogetherScreen ApprovalCard { height: 1fr; scrollbar-size-vertical: 0; }
    TogetherScreen #foot { height: 2; }
    """
    SCOPES: ClassVar[tuple[str, ...]] = ("together",)
    BINDINGS: ClassVar[list[BindingType]] = bindings("together")
    AUTO_FOCUS: ClassVar[str | None] = "ApprovalCard"

    def __init__(self, views: Sequence[ApprovalView]) -> None:
        super().__init__()
        self._views = list(views)
        self._notice = ""
        self._notice_until = 0.0
        self._over = False

    def compose(self) -> ComposeResult:
        yield Banner()
        with Vertical(id="together"):
            yield ApprovalCard()
            yield Static("", id="foot")
        yield HelpBar()

    def on_mount(self) -> None:
        super().on_mount()
        if self._over:
            return
        self.card.set_together(together(self._views))
        self.set_interval(WATCH_S, self._watch)

    def on_screen_resume(self) -> None:
        super().on_screen_resume()
        if self.is_mounted:
            self._follow(self.host.snapshot)

    def sync(self, snapshot: Snapshot, dirty: Dirty) -> bool:
        if dirty & Dirty.APPROVALS:
            self._follow(snapshot)
        if dirty & Dirty.LINK:
            self.show_link(snapshot)
        return False

    def _follow(self, snapshot: Snapshot) -> None:
        """Leave out what is no longer open just as it was shown; what is left has to be looked at again.

        Below another screen it waits: closing would close that one.
        """
        if self._over or self.app.screen is not self:
            return
        there = [view for view in self._views if snapshot.approval(view.approval_id) == view]
        gone = len(self._views) - len(there)
        if not gone:
            return
        self._views = there
        self.arming = Arming()
        said = f"{counted(gone, 'request')} changed or went while you looked"
        if len(there) < 2:
            self._over = True
            self.dismiss(None)
            self.host.tell(f"{said}; what is left is decided by itself")  # by the queue, which is on top now
            return
        self.tell(f"{said}; these are left, look again", bad=True)
        self.card.set_together(together(there))

    def tell(self, text: str, *, bad: bool) -> bool:
        # A toast would cover lines of the card while they count as shown.
        self._notice = to_display(text, limit=300)
        self._notice_until = time.monotonic() + _NOTICE_S
        return True

    def _watch(self) -> None:
        """Advance the arming of the card, and say in one line where it stands."""
        if self._over or not self.watch_arming(*(view.action_hash for view in self._views)):
            return
        now = time.monotonic()
        at_end = self.card.scroll_offset.y >= self.card.max_scroll_y > 0
        does = f"approves these {len(self._views)}, each once"
        foot = armed(self.host.keys, Looked(self.arming, at_end), now, does)
        notice = Content.styled(self._notice if now < self._notice_until else "", "bold $warning")
        self.show_foot(Content("\n").join([notice, foot]))

    def handlers(self) -> Handlers:
        return {
            "queue.card_up": Handler(self.card_up),
            "queue.card_down": Handler(self.card_down),
            "queue.approve": Handler(
                self._approve,
                label=lambda: f"approve these {len(self._views)}",
                not_yet=self.not_armed,
            ),
        }

    def _approve(self) -> None:
        self._follow(self.host.snapshot)
        if self._over or not self.is_current:
            return
        self._watch()
        if self.too_soon():
            return
        self._over = True
        self.dismiss(SeenTogether(tuple(self._views), self.card.shown_hash))
