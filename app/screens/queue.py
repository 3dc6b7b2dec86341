"""The queue: every open request, its card rendered from the action alone, and the keys that decide."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container, Vertical
from textual.content import Content
from textual.widgets import Static

from app import requests
from app.arming import ARM_S, Arming
from app.handlers import Handler, Handlers, bindings
from app.models import Dirty, Snapshot
from app.screens import queue_all
from app.screens.base import WatchScreen
from harness.events import needs
from harness.events.action import BadAction, from_wire
from harness.events.cap import Cap
from harness.events.request import Request
from harness.events.untrusted import to_display
from harness.events.views import ApprovalView
from harness.events.words import NANO, money
from harness.protocol import config as configuration
from harness.protocol.amounts import usd_to_nano
from harness.protocol.client import SupervisorError, Unreachable
from widgets.approval_card import ApprovalCard
from widgets.fleet_bar import Banner
from widgets.help_bar import HelpBar
from widgets.queue_list import QueueList

_WATCH_S = 0.1
_NOTICE_S = 4.0
_BAD_NOTICE_S = 10.0
_SNOOZE_S = 3600
_NOTHING = "no request is selected"


class QueueScreen(WatchScreen):
    """Decide one request at a time. A decision always carries the hash of the action that was on screen."""

    CSS_PATH = "queue.tcss"
    SCOPES: ClassVar[tuple[str, ...]] = ("queue",)
    BINDINGS: ClassVar[list[BindingType]] = bindings("queue")
    AUTO_FOCUS: ClassVar[str | None] = "QueueList"

    def __init__(self, approval_id: str = "") -> None:
        super().__init__()
        self._first = approval_id
        self._shown: ApprovalView | None = None
        self.arming = Arming()
        self._sent: set[str] = set()
        self._needs: tuple[ApprovalView, ...] = ()
        self._refused_as_stale: tuple[ApprovalView, str] | None = None
        self._notice = Content("")
        self._notice_until = 0.0
        self._told_to_scroll = False
        self._paged_at = -1

    def compose(self) -> ComposeResult:
        yield Banner()
        with Container(id="queue"):
            yield QueueList()
            with Vertical(id="right"):
                yield ApprovalCard()
                yield Static("", id="foot")
        yield HelpBar()

    def on_mount(self) -> None:
        super().on_mount()
        # Looks at the card while it is on screen: whether it was seen whole, and for how long.
        self.set_interval(_WATCH_S, self._watch_card)

    @property
    def requests(self) -> QueueList:
        """The list of requests."""
        return self.query_one(QueueList)

    @property
    def card(self) -> ApprovalCard:
        """The card of the selected request."""
        return self.query_one(ApprovalCard)

    @property
    def view(self) -> ApprovalView | None:
        """The request on screen: what was rendered, not what arrived since."""
        return self._shown

    def choose(self, approval_id: str) -> None:
        """Select a request by id."""
        self.requests.select(approval_id)

    # -- what is shown -----------------------------------------------------------------------------

    def sync(self, snapshot: Snapshot, dirty: Dirty) -> bool:
        if dirty & (Dirty.APPROVALS | Dirty.ROWS):
            self._sent &= {view.approval_id for view in snapshot.approvals}
            needs = tuple(view for view in snapshot.needs() if view.approval_id not in self._sent)
            if needs != self._needs:  # rows change all the time, and what they need seldom
                self._needs = needs
                self.requests.set_views(needs)
            if self._first and self.requests.select(self._first):
                self._first = ""
            self._follow_stale()
            self._show_selected()
        if dirty & Dirty.LINK:
            self.query_one(Banner).say(
                "" if snapshot.live else snapshot.link.text, calm=snapshot.link.state == "connecting"
            )
        return False

    def _follow_stale(self) -> None:
        """Select the request that is asked anew in place of one that was refused as stale, unless the person has moved
        on meanwhile.
        """
        if self._refused_as_stale is None:
            return
        old, left_at = self._refused_as_stale
        if any(view.approval_id == old.approval_id for view in self._needs):
            return
        again = next((v for v in self._needs if (v.sid, v.call_id) == (old.sid, old.call_id) and v.call_id), None)
        if left_at and self.requests.selected != left_at:
            self._refused_as_stale = None
        elif again is not None:
            self._refused_as_stale = None
            self.requests.select(again.approval_id)
        else:
            self._refused_as_stale = (old, self.requests.selected)

    def clock(self, now: float) -> None:
        self.requests.refresh()

    def tell(self, text: str, *, bad: bool) -> bool:
        # A toast would cover lines of the card while they count as shown.
        self._notice = Content.styled(to_display(text, limit=300), "bold $error" if bad else "bold")
        self._notice_until = time.monotonic() + (_BAD_NOTICE_S if bad else _NOTICE_S)
        self._told_to_scroll = False
        self._show_foot()
        return True

    def on_screen_resume(self) -> None:
        self.app.clear_notifications()
        super().on_screen_resume()

    def on_queue_list_moved(self) -> None:
        self._show_selected()

    def _show_selected(self) -> None:
        view = self.host.snapshot.approval(self.requests.selected)
        if view == self._shown:
            return
        self._shown = view
        self.arming = Arming()
        self.card.set_view(view)
        self._watch_card()
        self.show_keys()

    def _watch_card(self) -> None:
        """Advance the arming of the card, and say in one line where it stands."""
        view = self._shown
        now = time.monotonic()
        if not self.app.is_running:
            return  # the screen is being taken down and has lost its card
        if self.app.screen is not self:
            self.arming = Arming()  # covered by a dialog: it appears anew when that closes
            return
        key = (view.approval_id, view.action_hash, str(self.card.size)) if view is not None else ()
        self.arming = self.arming.observe(key, bool(key) and self.card.fully_shown, now)
        # done: it must not stand above what can be decided now
        if self._told_to_scroll and self.arming.since is not None:
            self._told_to_scroll = False
            self._notice_until = now
        self._show_foot()

    def _show_foot(self) -> None:
        """Two lines of fixed height below the card, because a foot that grows would move the card and disarm it."""
        now = time.monotonic()
        notice = self._notice if now < self._notice_until else Content("")
        foot = self.query_one("#foot", Static)
        arming = self._arming_text(now)
        lines = [notice, arming] if notice.plain else [arming]
        if len(notice.plain) > foot.size.width:
            lines = [notice]  # it takes both lines; what can be decided is said again when it is gone
        foot.update(Content("\n").join(lines))

    def _arming_text(self, now: float) -> Content:
        view = self._shown
        keys = self.host.keys
        if view is None:
            return (
                Content("")
                if self.requests.views
                else Content.styled(
                    f"Nothing needs you. {keys.shown('go.history')} shows what was decided,"
                    f" {keys.shown('go.brief')} what happened since you looked.",
                    "$text-muted",
                )
            )
        if not view.options:
            puts_off = f"; {keys.shown('queue.defer')} puts its alarm off for an hour" if self._rings() else ""
            return Content.styled(f"{keys.shown('queue.session')} opens its session{puts_off}", "$text-muted")
        if not self._approving(view):
            return Content("")
        if self.arming.since is None:
            if self.card.scroll_offset.y >= self.card.max_scroll_y > 0:
                return Content.assemble(
                    ("▲ skipped: ", "bold $warning"),
                    (f"{keys.shown('queue.card_up')} shows what was not on screen yet", "$text-muted"),
                )
            return Content.assemble(
                ("▼ more below: ", "bold $warning"),
                (f"{keys.shown('queue.card_down')} shows it, then this can be approved", "$text-muted"),
            )
        if not self.arming.armed(now):
            return Content.styled("○ looking …", "$text-muted")
        what = self._approval(view)[1]
        more = "; then you type the session's name" if view.risk == "critical" else ""
        if self.card.foldable:
            more += f" · {keys.shown('queue.facts')} shows the facts"
        return Content.assemble((f"● {keys.shown('queue.approve')} ", "bold $success"), (what + more, "$text-muted"))

    # -- actions ----------------------------------------------------------------------------------

    @staticmethod
    def _approval(view: ApprovalView) -> tuple[str, str]:
        """What approving this kind of request is called, and what it does."""
        if "allow" not in view.options:
            return "try again", "tries again"
        return _APPROVAL.get(view.kind, ("approve", "approves exactly this, once"))

    @staticmethod
    def _approving(view: ApprovalView) -> bool:
        return bool({"allow", "retry"} & set(view.options))

    def _is(self, *kinds: str) -> bool:
        return self._shown is not None and self._shown.kind in kinds

    def handlers(self) -> Handlers:
        in_doubt = "no call is in doubt in this request"
        return {
            "focus.next": Handler(self.focus_next),
            "focus.previous": Handler(self.focus_previous),
            "queue.up": Handler(lambda: self.requests.move(-1), self._no_request),
            "queue.down": Handler(lambda: self.requests.move(1), self._no_request),
            "queue.card_up": Handler(lambda: self.card.scroll_page_up(animate=False), self._nothing_shown),
            "queue.card_down": Handler(self._card_down, self._nothing_shown),
            "queue.session": Handler(self._open_session, self._nothing_shown),
            "queue.changes": Handler(self._show_changes, self._no_changes),
            "queue.facts": Handler(lambda: self.card.fold(), self._nothing_folded),
            "queue.defer": Handler(self._defer, self._not_deferrable, lambda: "snooze 1h" if self._rings() else ""),
            "queue.approve": Handler(
                self._approve,
                self._unless("there is nothing to approve in this request", "allow", "retry"),
                lambda: self._approval(self._shown)[0] if self._shown is not None else "",
            ),
            "queue.edit": Handler(self._edit, self._not_editable),
            "queue.unfold": Handler(lambda: self.requests.unfold(), self._alone),
            "queue.all": Handler(self._approve_all, self._not_all),
            "queue.rule": Handler(self._make_rule, self._no_rule),
            "queue.deny": Handler(self._deny, self._unless("this request cannot be denied", "deny")),
            "queue.answer": Handler(self._answer, self._unless("this request takes no answer", "answer")),
            "queue.raise": Handler(self._raise, self._unless("this request is not about a cap", "raise")),
            "queue.finish": Handler(
                lambda: self._plain("finish"), self._unless("this request does not offer to finish up", "finish")
            ),
            "queue.stop": Handler(
                self._ask_stop, self._unless("this request does not offer to stop its session", "stop")
            ),
            "queue.done": Handler(lambda: self._plain("done"), self._not_in_doubt),
            "queue.accept": Handler(lambda: self._plain("done"), self._not_finished),
            "queue.failed": Handler(lambda: self._plain("failed"), self._unless(in_doubt, "failed")),
            "queue.unknown": Handler(lambda: self._plain("unknown"), self._unless(in_doubt, "unknown")),
        }

    # -- why not -----------------------------------------------------------------------------------

    def _unless(self, sentence: str, *options: str) -> Callable[[], str]:
        """Says the sentence unless the request on screen offers one of the options."""

        def reason() -> str:
            if self._shown is None:
                return _NOTHING
            return "" if set(options) & set(self._shown.options) else sentence

        return reason

    def _no_request(self) -> str:
        return "" if self.requests.views else "no request is open"

    def _nothing_shown(self) -> str:
        return "" if self._shown is not None else _NOTHING

    def _rings(self) -> bool:
        """What is shown is no request, but a session whose alarm rings."""
        view = self._shown
        row = None if view is None else self.host.snapshot.rows.get(needs.session_of(view.approval_id))
        return row is not None and bool(row.alarms)

    def _not_deferrable(self) -> str:
        if self._shown is None:
            return _NOTHING
        if self._rings():
            return ""
        return "" if self._shown.options else "it asks nothing; open its session to see what helps"

    def _no_changes(self) -> str:
        if self._shown is None:
            return _NOTHING
        return "" if self._shown.diff else "this request changes no file"

    def _nothing_folded(self) -> str:
        if self._shown is None:
            return _NOTHING
        return "" if self.card.foldable else "nothing of this card is folded"

    def _not_editable(self) -> str:
        if self._shown is None:
            return _NOTHING
        editable = "allow_edited" in self._shown.options and _input_of(self._shown) is not None
        return "" if editable else "this request has no input that could be edited"

    def _alone(self) -> str:
        return "" if len(self.requests.group) > 1 else "no other open request is like this one"

    def _not_all(self) -> str:
        return _NOTHING if self._shown is None else queue_all.refusal(self._shown, self.requests.group)

    def _no_rule(self) -> str:
        if self._shown is None:
            return _NOTHING
        return "" if self._is(Request.TOOL) else "only a call that asks to leave the fence can get a rule"

    def _not_in_doubt(self) -> str:
        if self._shown is None:
            return _NOTHING
        in_doubt = "done" in self._shown.options and self._shown.kind != Request.QUESTION
        return "" if in_doubt else "no call is in doubt in this request"

    def _not_finished(self) -> str:
        if self._shown is None:
            return _NOTHING
        asks = "done" in self._shown.options and self._shown.kind == Request.QUESTION
        return "" if asks else "this request does not ask whether the session is finished"

    # -- looking -----------------------------------------------------------------------------------

    def _card_down(self) -> None:
        # One page per frame: a page that was scrolled past unpainted would never count as shown.
        if self.card.begun and self._paged_at < self.host.frames:
            self._paged_at = self.host.frames
            self.card.scroll_page_down(animate=False)

    def _open_session(self) -> None:
        if self._shown is not None:
            self.host.open_session(self._shown.sid)

    def _show_changes(self) -> None:
        from app.screens.changes import ChangesScreen

        if self._shown is not None:
            self.app.push_screen(ChangesScreen(self._shown))

    # -- deciding ----------------------------------------------------------------------------------

    def _refused(self) -> bool:
        """Check the arming for a key that decides, at the time it was pressed; says why when it does not count."""
        now = time.monotonic() - self.host.input_age()
        why = self.arming.refusal(now)
        self.arming = self.arming.pressed(now)
        if why:
            self.host.tell(why)
            self._told_to_scroll = self.arming.unread
        return bool(why)

    def _approve(self) -> None:
        self._watch_card()
        view = self._shown
        if view is None or self._refused():
            return
        decision = "allow" if "allow" in view.options else "retry"
        if view.risk != "critical":
            self._decide(view, decision)
            return
        self._type_name(view, decision)

    def _type_name(self, view: ApprovalView, decision: str) -> None:
        from app.screens.dialogs import Ask

        wanted = to_display(view.session_name)
        shown = self._proof()

        def check(text: str) -> str:
            if text.strip() != wanted:
                raise ValueError(f"type {wanted} to approve this")
            return text

        def typed(text: str | None) -> None:
            if text is not None:
                self._decide(view, decision, shown_hash=shown)

        question = f"This is critical: {view.title}. Type the session's name to let it run once."
        self.app.push_screen(Ask("Approve for", view.session_name, question, submit="approve", check=check), typed)

    def _edit(self) -> None:
        from app.screens.dialogs import EditInput

        view = self._shown
        given = _input_of(view) if view is not None else None
        if view is None or given is None or self._refused():
            return
        shown = self._proof()

        def edited(value: dict[str, Any] | None) -> None:
            if value is not None:
                self._decide(view, "allow_edited", shown_hash=shown, edited=value)

        self.app.push_screen(EditInput(view.session_name, given), edited)

    def _approve_all(self) -> None:
        self._watch_card()
        view = self._shown
        if view is None or self._refused():
            return
        chosen = queue_all.same(view, self.requests.group)
        shown = self._proof()

        def decided(yes: bool | None) -> None:
            for one in chosen if yes else []:
                self._decide(one, "allow", shown_hash=shown if one.approval_id == view.approval_id else "")

        self.app.push_screen(queue_all.question(chosen), decided)

    def _make_rule(self) -> None:
        from app.screens.granting import GrantDialog

        self._watch_card()
        if self._shown is not None and not self._refused():
            self.app.push_screen(GrantDialog(self._shown))

    def _deny(self) -> None:
        self._with_text("Deny", "deny", "The agent reads your reason and goes on without this.", "deny")

    def _answer(self) -> None:
        from app.screens import answering

        view = self._shown
        if view is None:
            return
        shown = self._proof()

        def answered(given: answering.Answer) -> None:
            self._decide(view, "answer", shown_hash=shown, message=given.message, value=given.number)

        answering.ask(self.app, self.host, view, answered)

    def _with_text(self, title: str, decision: str, text: str, submit: str) -> None:
        from app.screens.dialogs import Ask

        view = self._shown
        if view is None:
            return
        shown = self._proof()

        def written(message: str | None) -> None:
            if message is not None:
                self._decide(view, decision, shown_hash=shown, message=message)

        self.app.push_screen(
            Ask(
                title,
                view.session_name,
                f"{view.title}{'' if view.title.endswith(('?', '!', '.')) else '.'} {text}",
                submit=submit,
            ),
            written,
        )

    def _raise(self) -> None:
        from app.screens.dialogs import Ask

        view = self._shown
        if view is None:
            return
        limit = int(view.detail.get("limit", 0))
        need = int(view.detail.get("need", 0))
        cap = Cap.of(view.detail.get("cap"))
        in_usd = cap is not None and cap.in_usd
        proposed = max(limit * 2, int(view.detail.get("used", 0)) + need)
        shown = self._proof()

        def check(text: str) -> int:
            value = usd_to_nano(text) if in_usd else _whole(text)
            if value <= limit:
                raise ValueError(f"the new cap must be above {money(limit) if in_usd else limit}")
            return value

        def amount(value: int | None) -> None:
            if value is not None:
                self._decide(view, "raise", shown_hash=shown, value=value)

        unit = cap.unit if cap is not None else "tokens"
        text = f"The cap is {money(limit) if in_usd else f'{limit:,}'} now. New cap in {unit}:"
        default = f"{proposed / NANO:.2f}" if in_usd else str(proposed)
        self.app.push_screen(
            Ask("Raise the cap of", view.session_name, text, value=default, submit="raise", check=check), amount
        )

    def _ask_stop(self) -> None:
        from app.screens.dialogs import Confirm

        view = self._shown
        if view is None:
            return
        shown = self._proof()

        def decided(yes: bool | None) -> None:
            if yes:
                self._decide(view, "stop", shown_hash=shown)

        self.app.push_screen(
            Confirm(
                "Stop",
                view.session_name,
                "The request is refused and its agent ends. The worktree, the branch and the log stay.",
                "stop it",
            ),
            decided,
        )

    def _plain(self, decision: str) -> None:
        if self._shown is not None and not self._refused():
            self._decide(self._shown, decision)

    def _defer(self) -> None:
        view = self._shown
        if view is None:
            return
        if self._rings():
            said = f"{view.session_name}: its alarm rings again in an hour, if it still holds"
            self.host.send(said, "snooze", sid=view.sid, seconds=_SNOOZE_S)
            return
        self.host.send("deferred; it stays open, at the end of the queue", "defer", approval_id=view.approval_id)

    def _proof(self) -> str:
        """Hash of the exact text that is on screen, so that the record shows what was seen."""
        return self.card.shown_hash

    def _decide(self, view: ApprovalView, decision: str, *, shown_hash: str | None = None, **given: Any) -> None:
        proof = self._proof() if shown_hash is None else shown_hash
        self.host.run_beside(self._send(view, decision, proof, given))

    async def _send(self, view: ApprovalView, decision: str, proof: str, given: dict[str, Any]) -> None:
        self._sent.add(view.approval_id)
        try:
            request = requests.decide(self.host.folders, view, decision, shown_hash=proof, **given)
            await self.host.feed.call("decide", **request)
        except SupervisorError as exc:
            self._sent.discard(view.approval_id)
            if exc.code == "stale":
                self._refused_as_stale = (view, "")
            self.host.tell(str(exc), bad=True)
        except configuration.ConfigError as exc:
            self._sent.discard(view.approval_id)
            self.host.tell(str(exc), bad=True)
        except Unreachable as exc:
            self._sent.discard(view.approval_id)
            self.host.tell(f"{exc}; the request is still open as far as this screen knows", bad=True)
        else:
            self.host.drafts.pop(view.approval_id, None)
            said = _DONE_OF.get((view.kind, decision)) or _DONE.get(decision, decision)
            self.host.tell(f"{view.session_name}: {said}")
        if self.stands:
            self.sync(self.host.snapshot, Dirty.APPROVALS)


_APPROVAL: dict[str, tuple[str, str]] = {
    Request.PROTECTED: ("accept", "lets its version count from now on"),
    Request.PLAN: ("accept plan", "accepts the plan; the work begins"),
    Request.GATE: ("go on", "lets the phase go on"),
}
_DONE_OF: dict[tuple[str, str], str] = {
    (Request.QUESTION, "done"): "taken as finished",
    (Request.PROTECTED, "allow"): "allowed; its version counts from now on",
    (Request.PROTECTED, "deny"): "denied; the originals stay",
    (Request.PLAN, "allow"): "accepted; the work begins",
    (Request.PLAN, "deny"): "sent back with your words",
    (Request.GATE, "allow"): "the phase goes on",
    (Request.GATE, "deny"): "the session is paused; resumed, it asks again",
}
_DONE = {
    "allow": "approved; it runs now, once",
    "allow_edited": "approved as edited",
    "deny": "denied; the agent reads your reason",
    "answer": "answered",
    "raise": "cap raised",
    "finish": "finishing up",
    "stop": "stopping",
    "done": "recorded as done",
    "failed": "recorded as not done",
    "unknown": "recorded as unknown",
    "retry": "trying again",
}


def _input_of(view: ApprovalView) -> dict[str, Any] | None:
    """The input that can be edited; None when the request has no action, or one whose input is not sent along."""
    try:
        given = from_wire(view.action).input
    except BadAction:
        return None
    return dict(given) if given is not None else None


def _whole(text: str) -> int:
    clean = text.replace(",", "").replace("_", "").strip()
    if not clean.isascii() or not clean.isdigit():
        raise ValueError(f"{text!r} is not a whole number")
    return int(clean)


__all__ = ["ARM_S", "QueueScreen"]
