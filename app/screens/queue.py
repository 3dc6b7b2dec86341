"""The queue: every open request, its card rendered from the action alone, and the keys that decide."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.widgets import Static

from app.client.snapshot import Dirty, Snapshot
from app.framework.handlers import Handler, Handlers, bindings, in_list
from app.input.arming import Arming
from app.screens import queue_refusals, queue_words
from app.screens.dialogs import together
from app.screens.dialogs.card_screen import WATCH_S, CardScreen
from app.screens.dialogs.deciding import Deciding
from app.screens.queue_foot import Looked, nothing_open, standing
from app.screens.queue_refusals import NOTHING, Refusal
from app.screens.session_commands import SessionCommands, not_going_on
from app.terminal import textual_internals
from app.terminal.clipboard import Selected
from harness.domain import problems
from harness.domain.calls.approval_kind import Request
from harness.domain.decision import Decision
from harness.domain.text.display_safe import to_display
from harness.views import attention
from harness.views.session_views import ApprovalView, SessionRow
from widgets.base.help_bar import HelpBar
from widgets.card.approval_card import ApprovalCard
from widgets.fleet.fleet_bar import Banner
from widgets.queue.queue_list import QueueList

_NOTICE_S = 4.0
_BAD_NOTICE_S = 10.0
_GOES_ON = ("session.continue", "session.resume")
_HELPS = (*_GOES_ON, "session.pause", "session.say")
_ACTS = frozenset(
    (*_HELPS, *(f"queue.{name}" for name in ("all", "answer", "deny", "defer", "raise", "stop", "session")))
)
"""What is done at once, or begun, with the item on screen without a look at whether it was seen whole."""


class QueueScreen(CardScreen, SessionCommands):
    """Decide one request at a time. A decision always carries the hash of the action that was on screen."""

    CSS_PATH = "queue.tcss"
    SCOPES: ClassVar[tuple[str, ...]] = ("queue",)
    BINDINGS: ClassVar[list[BindingType]] = bindings("queue")
    AUTO_FOCUS: ClassVar[str | None] = "QueueList"
    NO_TARGET: ClassVar[str] = "this waits for your decision"

    def __init__(self, approval_id: str = "") -> None:
        super().__init__()
        self._first = approval_id
        self._shown: ApprovalView | None = None
        self._needs: tuple[ApprovalView, ...] = ()
        self._notice = Content("")
        self._notice_until = 0.0
        self._told_to_scroll = False

    def compose(self) -> ComposeResult:
        yield Banner()
        yield Static("", id="nothing")
        with Container(id="queue"):
            yield QueueList()
            with Vertical(id="right"):
                yield ApprovalCard()
                yield Static("", id="foot")
        yield HelpBar()

    def on_mount(self) -> None:
        super().on_mount()
        # Looks at the card while it is on screen: whether it was seen whole, and for how long.
        self.set_interval(WATCH_S, self._watch_card)

    @property
    def requests(self) -> QueueList:
        """The list of requests."""
        return self.query_one(QueueList)

    @property
    def view(self) -> ApprovalView | None:
        """The request on screen: what was rendered, not what arrived since."""
        return self._shown

    def choose(self, approval_id: str) -> None:
        """Select a request by id."""
        self.requests.select(approval_id)

    @cached_property
    def deciding(self) -> Deciding:
        """What decides about it."""
        return Deciding(self)

    # -- what is shown -----------------------------------------------------------------------------

    def sync(self, snapshot: Snapshot, dirty: Dirty) -> bool:
        if dirty & (Dirty.APPROVALS | Dirty.ROWS):
            sent = self.deciding.sent
            sent &= {view.approval_id for view in snapshot.approvals}
            needs = tuple(view for view in snapshot.needs() if view.approval_id not in sent)
            if needs != self._needs:  # rows change all the time, and what they need seldom
                self._needs = needs
                self.requests.set_views(needs)
            if self._first and self.requests.select(self._first):
                self._first = ""
            self._follow_stale()
            self._show_selected(news=True)
            self._show_place()
            self._show_nothing(snapshot)
        if dirty & Dirty.LINK:
            self.show_link(snapshot)
        return False

    def _show_nothing(self, snapshot: Snapshot) -> None:
        """An empty queue leads on, in place of an empty list and an empty card."""
        empty = not self._needs
        self.set_class(empty, "-nothing")
        if empty:
            self.query_one("#nothing", Static).update(nothing_open(self.host.keys, snapshot.fleet))

    def _follow_stale(self) -> None:
        """Select the request that is asked anew in place of one that was refused as stale, unless the person has moved
        on meanwhile.
        """
        if self.deciding.stale is None:
            return
        old, left_at = self.deciding.stale
        if any(view.approval_id == old.approval_id for view in self._needs):
            return
        again = next((v for v in self._needs if (v.sid, v.call_id) == (old.sid, old.call_id) and v.call_id), None)
        if left_at and self.requests.selected != left_at:
            self.deciding.stale = None
        elif again is not None:
            self.deciding.stale = None
            self.requests.select(again.approval_id)
        else:
            self.deciding.stale = (old, self.requests.selected)

    def clock(self, now: float) -> None:
        self.requests.tick(now)

    def tell(self, text: str, *, bad: bool) -> bool:
        # A toast would cover lines of the card while they count as shown.
        self._notice = Content.styled(to_display(text, limit=300), "bold $error" if bad else "bold")
        self._notice_until = time.monotonic() + (_BAD_NOTICE_S if bad else _NOTICE_S)
        self._told_to_scroll = False
        self._show_foot()
        return True

    def on_queue_list_moved(self) -> None:
        self._show_selected()
        self._show_place()

    def _show_place(self) -> None:
        """On the line between list and card, which a small screen has: the list has room for two there."""
        right = self.query_one("#right", Vertical)
        if right.border_title != (place := self.requests.place):
            right.border_title = place

    def _show_selected(self, *, news: bool = False) -> None:
        view = self.host.snapshot.approval(self.requests.selected)
        if view == self._shown:
            return
        before = self._shown
        gone = before.approval_id if before is not None else ""
        if news and gone and gone not in self.deciding.dealt_with and (view is None or view.approval_id != gone):
            self.swapped()
        self._shown = view
        # settled with the card, which says of a call all that the list does: what comes while it is read takes no room
        alone = len(self._needs) == 1 and view is not None and view.kind == Request.TOOL
        self.set_class(alone, "-alone")
        self.arming = Arming()
        self.card.set_view(view)
        self._watch_card()
        self.show_keys()
        textual_internals.paint(self)

    def _watch_card(self) -> None:
        """Advance the arming of the card, and say in one line where it stands."""
        view = self._shown
        if not self.watch_arming(*((view.approval_id, view.action_hash) if view is not None else ())):
            return
        # done: it must not stand above what can be decided now
        if self._told_to_scroll and self.arming.since is not None:
            self._told_to_scroll = False
            self._notice_until = 0.0
        self._show_foot()

    def _show_foot(self) -> None:
        """Two lines of fixed height below the card, because a foot that grows would move the card and disarm it."""
        now = time.monotonic()
        notice = self._notice if now < self._notice_until else Content("")
        foot = self.query_one("#foot", Static)
        arming = standing(self.host.keys, self._shown, self._looked(), now)
        lines = [notice, arming] if notice.plain else [arming]
        if len(notice.plain) > foot.size.width:
            lines = [notice]  # it takes both lines; what can be decided is said again when it is gone
        said = Content("\n").join(lines)
        self.show_foot(said)

    def _looked(self) -> Looked:
        return Looked(
            self.arming,
            at_end=self.card.scroll_offset.y >= self.card.max_scroll_y > 0,
            foldable=self.card.foldable,
            rings=self.rings,
            helps=next(filter(self.can, _GOES_ON), ""),
        )

    # -- what decisions ask of the screen ----------------------------------------------------------

    @property
    def like(self) -> Sequence[ApprovalView]:
        """The request on screen and those that are like it."""
        return self.requests.group

    @property
    def proof(self) -> str:
        """Hash of the exact text that is on screen, so that the record shows what was seen."""
        return self.card.shown_hash

    @property
    def rings(self) -> bool:
        """What is shown is no request, but a session whose alarm rings."""
        view = self._shown
        row = None if view is None else self.host.snapshot.rows.get(attention.session_of(view.approval_id))
        return row is not None and bool(row.alarms)

    def refused(self) -> bool:
        """Check the arming for a key that decides, at the time it was pressed; says why when it does not count."""
        self._watch_card()
        refused = self.too_soon()
        if refused:
            self._told_to_scroll = self.arming.unread
        return refused

    def answered(self) -> None:
        """A decision was taken or given back."""
        if self.stands:
            self.sync(self.host.snapshot, Dirty.APPROVALS)

    # -- actions ----------------------------------------------------------------------------------

    @property
    def target(self) -> SessionRow | None:
        """The session of an item that takes no decision: only something done to it helps."""
        view = self._shown
        return self.host.snapshot.rows.get(view.sid) if view is not None and view.kind in problems.NO_REQUEST else None

    def selected_text(self) -> Selected | None:
        view = self.view
        return None if view is None else Selected("the card", self.card.text, view.approval_id)

    def handlers(self) -> Handlers:
        of = self._of
        do = self.deciding
        unless = queue_refusals.unless
        nothing_to_approve = "there is nothing to approve in this request"
        wait = self.not_armed
        of_session = SessionCommands.handlers(self)
        made = {
            **{ident: of_session[ident] for ident in _HELPS},
            "focus.next": Handler(self.focus_next),
            "focus.previous": Handler(self.focus_previous),
            **in_list(lambda: self.requests, self._no_request, "queue"),
            "queue.card_up": Handler(self.card_up, of(queue_refusals.shown)),
            "queue.card_down": Handler(self.card_down, of(queue_refusals.shown)),
            "queue.session": Handler(self._open_session, of(queue_refusals.shown)),
            "queue.changes": Handler(self._show_changes, of(queue_refusals.no_changes)),
            "queue.facts": Handler(lambda: self.card.fold(), of(self._nothing_folded)),
            "queue.defer": Handler(do.defer, of(queue_refusals.not_deferrable), self._deferring),
            "queue.approve": Handler(
                do.approve, of(unless(nothing_to_approve, Decision.ALLOW, Decision.RETRY)), self._approval, wait
            ),
            "queue.edit": Handler(do.edit, of(queue_refusals.not_editable), not_yet=wait),
            "queue.unfold": Handler(lambda: self.requests.unfold(), lambda: queue_refusals.alone(self.like)),
            "queue.all": Handler(do.approve_all, of(lambda view: together.refusal(view, self.like))),
            "queue.rule": Handler(do.make_rule, of(queue_refusals.no_rule), not_yet=wait),
            "queue.deny": Handler(do.deny, of(unless("this request cannot be denied", Decision.DENY))),
            "queue.answer": Handler(do.answer, of(unless("this request takes no answer", "answer"))),
            "queue.raise": Handler(do.raise_cap, of(unless("this request is not about a cap", "raise"))),
            "queue.finish": Handler(
                lambda: do.settle("finish"), of(unless("this request does not offer to finish up", "finish"))
            ),
            "queue.stop": Handler(self._end, of(self._not_ending)),
            "queue.done": Handler(lambda: do.settle("done"), of(queue_refusals.not_in_doubt)),
            "queue.accept": Handler(lambda: do.settle("done"), of(queue_refusals.not_finished)),
            "queue.fresh": Handler(
                lambda: do.settle(Decision.FRESH),
                of(unless("this request offers no new beginning", Decision.FRESH)),
            ),
            "queue.believe": Handler(
                lambda: do.settle(Decision.BELIEVE), of(unless("this request is not about a bill", Decision.BELIEVE))
            ),
            "queue.failed": Handler(lambda: do.settle("failed"), of(unless(queue_refusals.IN_DOUBT, "failed"))),
            "queue.unknown": Handler(lambda: do.settle("unknown"), of(unless(queue_refusals.IN_DOUBT, "unknown"))),
        }
        return {name: self.on_what_was_seen(do) if name in _ACTS else do for name, do in made.items()}

    def _of(self, refusal: Refusal) -> Callable[[], str]:
        """Asks it about the request on screen."""
        return lambda: NOTHING if self._shown is None else refusal(self._shown)

    def _end(self) -> None:
        """Nothing is refused with a session that only rings: it asks nothing."""
        if self.target is not None:
            self._stop()
        else:
            self.deciding.stop()

    def _not_ending(self, view: ApprovalView) -> str:
        if self.target is not None:
            return not_going_on(self.target)
        return queue_refusals.not_stopping(view)

    def _approval(self) -> str:
        return queue_words.approval(self._shown)[0] if self._shown is not None else ""

    def _no_request(self) -> str:
        return "" if self.requests.views else "no request is open"

    def _nothing_folded(self, view: ApprovalView) -> str:
        return "" if self.card.foldable else "nothing of this card is folded"

    def _deferring(self) -> str:
        return "snooze 1h" if self._shown is not None and self._shown.kind in problems.NO_REQUEST else ""

    # -- looking -----------------------------------------------------------------------------------

    def _open_session(self) -> None:
        if self._shown is not None:
            self.host.open_session(self._shown.sid)

    def _show_changes(self) -> None:
        from app.screens.dialogs.changes import ChangesScreen

        if self._shown is not None:
            self.app.push_screen(ChangesScreen(self._shown))
