"""Deciding the request on screen: what each decision asks first, and how it is sent with proof of what was shown."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, TypeVar, Unpack

from app.client import requests
from app.client.replies import read
from app.presenters import queue_outcome
from app.screens import queue_words
from app.screens.dialogs import together
from harness.domain import problems
from harness.domain.actions.action import BadAction, from_wire
from harness.domain.calls.cap_request import CapRequest
from harness.domain.decision import PERMITS, Decision
from harness.domain.settings import amounts
from harness.domain.text.display_safe import to_display
from harness.protocol.client import SupervisorError, Unreachable
from harness.protocol.config import config as configuration
from harness.tools.person_tool import Answer
from harness.views.replies import Outcome
from harness.views.session_views import ApprovalView

if TYPE_CHECKING:
    from textual.app import App
    from textual.screen import Screen

    from app.framework.application import Host

_SNOOZE_S = 3600
R = TypeVar("R")


class Deck(Protocol):
    """The screen that shows the request."""

    @property
    def app(self) -> App[object]:
        """The application, for dialogs."""

    @property
    def host(self) -> Host:
        """The application, as screens see it."""

    @property
    def view(self) -> ApprovalView | None:
        """The request on screen: what was rendered, not what arrived since."""

    @property
    def like(self) -> Sequence[ApprovalView]:
        """The request on screen and those that are like it."""

    @property
    def proof(self) -> str:
        """Hash of the exact text that is on screen, so that the record shows what was seen."""

    @property
    def rings(self) -> bool:
        """What is on screen is no request, but a session whose alarm rings."""

    def refused(self) -> bool:
        """Check the arming for the key that was just pressed; says why when it does not count."""

    def answered(self) -> None:
        """A decision was taken or given back: show what is open now."""


class Deciding:
    """Each decision about what the deck shows, at the time of its key; what comes of it the deck says."""

    def __init__(self, deck: Deck) -> None:
        self._deck = deck
        self.sent: set[str] = set()
        """Requests whose decision is under way or taken, which nobody decides again."""
        self.dealt_with: set[str] = set()
        """Items that keys of this screen did something about, which may therefore leave their place."""
        self.stale: tuple[ApprovalView, str] | None = None
        """The request that was refused as stale, and what was selected when it went."""

    # -- letting it happen -------------------------------------------------------------------------

    def approve(self) -> None:
        """Let exactly this run once; what is critical only after the session's name was typed."""
        view = self._deck.view
        if view is None or self._deck.refused():
            return
        decision = Decision.ALLOW if Decision.ALLOW in view.options else Decision.RETRY
        if view.risk != "critical":
            self._decide(view, decision)
            return
        self._type_name(view, decision, self._deck.proof)

    def _type_name(
        self, view: ApprovalView, decision: str, shown: str, edited: Mapping[str, object] | None = None
    ) -> None:
        from app.screens.dialogs.dialogs import Ask

        wanted = to_display(view.session_name)

        def check(text: str) -> str:
            if text.strip() != wanted:
                raise ValueError(f"type {wanted} to approve this")
            return text

        def typed(text: str | None) -> None:
            if text is not None:
                self._decide(view, decision, shown_hash=shown, edited=edited)

        question = f"This is critical: {view.title}. Type the session's name to let it run once."
        self._ask(Ask("Approve for", view.session_name, question, check, submit="approve"), typed)

    def edit(self) -> None:
        """Change the input first."""
        from app.screens.dialogs.dialogs import EditInput

        view = self._deck.view
        given = input_of(view) if view is not None else None
        if view is None or given is None or self._deck.refused():
            return
        shown = self._deck.proof

        def edited(value: dict[str, object] | None) -> None:
            if value is None:
                return
            if view.risk == "critical":
                self._type_name(view, Decision.ALLOW_EDITED, shown, edited=value)
                return
            self._decide(view, Decision.ALLOW_EDITED, shown_hash=shown, edited=value)

        self._ask(EditInput(view.session_name, given), edited)

    def approve_all(self) -> None:
        """This and every open request that is alike, each for its own action, once one card has shown them all."""
        view = self._deck.view
        if view is None:
            return

        def decided(seen: object) -> None:
            if isinstance(seen, together.SeenTogether):
                for one in seen.views:
                    self._decide(one, Decision.ALLOW, shown_hash=seen.shown)

        self._ask(together.TogetherScreen(together.chosen(view, self._deck.like)), decided)

    def make_rule(self) -> None:
        """The form that makes a rule of it."""
        from app.screens.dialogs.granting import GrantDialog

        view = self._deck.view
        if view is not None and not self._deck.refused():
            self._ask(GrantDialog(view), lambda _: None)

    def settle(self, decision: str) -> None:
        """A decision that nothing takes back, and that needs no words: once more asked."""
        view = self._deck.view
        if view is not None and not self._deck.refused():
            self._once_more(view, decision)

    def stop(self) -> None:
        """Refuse it and end the session; the card need not have been read for that."""
        if view := self._deck.view:
            self._once_more(view, Decision.STOP)

    def _once_more(self, view: ApprovalView, decision: str) -> None:
        from app.screens.dialogs.dialogs import Confirm

        shown = self._deck.proof

        def decided(yes: bool | None) -> None:
            if yes:
                self._decide(view, decision, shown_hash=shown)

        verb, text, yes = queue_words.asking(view, decision)
        self._ask(Confirm(verb, view.session_name, text, yes), decided)

    # -- in other words ----------------------------------------------------------------------------

    def deny(self) -> None:
        """Refuse it with a reason that the agent reads."""
        from app.screens.dialogs.dialogs import Ask, said

        view = self._deck.view
        if view is None:
            return
        shown = self._deck.proof

        def written(message: str | None) -> None:
            if message is not None:
                self._decide(view, Decision.DENY, shown_hash=shown, message=message)

        end = "" if view.title.endswith(("?", "!", ".")) else "."
        text = f"{view.title}{end} The agent reads your reason and goes on without this."
        self._ask(Ask("Deny", view.session_name, text, said, submit="deny"), written)

    def answer(self) -> None:
        """Say something in place of running it."""
        from app.screens.dialogs import answering

        view = self._deck.view
        if view is None:
            return
        shown = self._deck.proof

        def answered(given: Answer) -> None:
            self._decide(view, "answer", shown_hash=shown, message=given.message, value=given.number)

        answering.ask(self._deck.app, self._deck.host, view, answered)

    def raise_cap(self) -> None:
        """Ask for a higher cap."""
        from app.screens.dialogs.dialogs import Ask

        view = self._deck.view
        if view is None:
            return
        said = CapRequest.of(view.detail)
        if said is None:
            self._deck.host.tell("this version does not know that cap", bad=True)
            return
        cap = said.cap
        proposed = max(said.limit * 2, said.used + said.need)
        shown = self._deck.proof

        def check(text: str) -> int:
            more, typed = (said.limit, text.strip()[1:]) if text.strip().startswith("+") else (0, text)
            value = more + requests.amount(cap, typed)
            if value <= said.limit:
                raise ValueError(f"the new cap must be above {cap.amount(said.limit)}")
            return value

        def amount(value: int | None) -> None:
            if value is not None:
                self._decide(view, "raise", shown_hash=shown, value=value)

        text = f"The cap is {cap.amount(said.limit)} now. New cap in {cap.unit}, or what is added to it (+2):"
        default = amounts.usd_typed(proposed) if cap.in_usd else str(proposed)
        dialog = Ask("Raise the cap of", view.session_name, text, check, value=default, submit="raise")
        self._ask(dialog, amount)

    def defer(self) -> None:
        """Put it last; an alarm, and what asks nothing, is put off for an hour."""
        view = self._deck.view
        if view is None:
            return
        self.dealt_with.add(view.approval_id)
        if view.kind in problems.NO_REQUEST:
            said = "it stays under Errors, and comes back to its place in an hour"
            if self._deck.rings:
                said = "its alarm rings again in an hour, if it still holds"
            said = f"{view.session_name}: {said}"
            self._deck.host.send(said, "snooze", sid=view.sid, seconds=_SNOOZE_S)
            return
        said = "deferred; it stays open, at the end of the queue"
        self._deck.host.send(said, "defer", approval_id=view.approval_id)

    # -- sending -----------------------------------------------------------------------------------

    def _ask(self, dialog: Screen[R], then: Callable[[R | None], None]) -> None:
        self._deck.app.push_screen(dialog, then)

    def _decide(self, view: ApprovalView, decision: str, **given: Unpack[requests.WithDecision]) -> None:
        given.setdefault("shown_hash", self._deck.proof)
        self._deck.host.run_beside(self._send(view, decision, given))

    async def _send(self, view: ApprovalView, decision: str, given: requests.WithDecision) -> None:
        host = self._deck.host
        self.sent.add(view.approval_id)
        self.dealt_with.add(view.approval_id)
        try:
            request = requests.decide(host.folders, view, decision, **given)
            await host.feed.call("decide", **request)
        except SupervisorError as exc:
            self.sent.discard(view.approval_id)
            if exc.code == "stale":
                self.dealt_with.discard(view.approval_id)
                self.stale = (view, "")
            host.tell(str(exc), bad=True)
        except configuration.ConfigError as exc:
            self.sent.discard(view.approval_id)
            host.tell(str(exc), bad=True)
        except Unreachable as exc:
            self.sent.discard(view.approval_id)
            host.tell(f"{exc.message}; the request is still open as far as this screen knows", bad=True)
        else:
            host.drafts.pop(view.approval_id, None)
            host.tell(f"{view.session_name}: {queue_words.done(view, decision)}")
            if decision in PERMITS and view.call_id:
                host.run_beside(self._followed(view))
        self._deck.answered()

    async def _followed(self, view: ApprovalView) -> None:
        """Say it when what was let run did not: it depends on something that is different by now."""
        host = self._deck.host
        about = {"sid": view.sid, "approval_id": view.approval_id, "call_id": view.call_id}
        with contextlib.suppress(SupervisorError, Unreachable):  # the decision stands all the same
            outcome = read(Outcome, "outcome", await host.feed.call("outcome", **about))
            if outcome.became == queue_outcome.STALE:
                host.tell(f"{view.session_name}: {queue_outcome.stale(outcome)[0]}", bad=True)


def input_of(view: ApprovalView) -> dict[str, object] | None:
    """The input that can be edited; None when the request has no action, or one whose input is not sent along."""
    try:
        given = from_wire(view.action).input
    except BadAction:
        return None
    return dict(given) if given is not None else None
