"""The rules that let requests through: what each covers and let run, and the key that takes one back."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from app.client.snapshot import Dirty, Snapshot
from app.framework.handlers import Handler, Handlers, bindings, in_list
from app.presenters import grant_lines
from app.screens.base import WatchScreen
from harness.protocol.client import SupervisorError, Unreachable
from harness.views.grant_views import GrantList, GrantView
from widgets.base.entry_list import EntryList, Item
from widgets.base.fact_list import FactList
from widgets.base.help_bar import HelpBar
from widgets.fleet.fleet_bar import Banner

_NONE = "No rule stands: every request that leaves the sandbox asks. A on a card of the queue makes one."
_NO_ENDED = "There has never been a rule. A on a card of the queue makes one."


class RulesScreen(WatchScreen):
    """A list, and below it all of the rule that is selected; the selection stays with its rule."""

    CSS_PATH = "rules.tcss"
    SCOPES: ClassVar[tuple[str, ...]] = ("rules",)
    BINDINGS: ClassVar[list[BindingType]] = bindings("rules")
    AUTO_FOCUS: ClassVar[str | None] = "EntryList"

    def __init__(self) -> None:
        super().__init__()
        self._rules: Sequence[GrantView] = ()
        self._ended = False
        self._changed = False

    def compose(self) -> ComposeResult:
        yield Banner()
        yield Static("Reading …", id="count")
        yield EntryList()
        yield FactList(dom_id="rule")
        yield HelpBar()

    def on_mount(self) -> None:
        super().on_mount()
        self._reload()

    @property
    def list(self) -> EntryList:
        """The list."""
        return self.query_one(EntryList)

    @property
    def selected(self) -> GrantView | None:
        """The rule that keys act on; nothing before the screen stands."""
        at = self.list.at if self.is_mounted and self.query(EntryList) else -1
        return self._rules[at] if 0 <= at < len(self._rules) else None

    def sync(self, snapshot: Snapshot, dirty: Dirty) -> bool:
        if dirty & Dirty.LINK:
            self.show_link(snapshot)
        self._changed = True  # whatever a session does may have used a rule
        return False

    def clock(self, now: float) -> None:
        if self._changed and self.host.snapshot.live:
            self._reload()

    # -- reading -----------------------------------------------------------------------------------

    def _reload(self) -> None:
        self._changed = False
        self.host.run_beside(self._read())

    async def _read(self) -> None:
        try:
            found = (await self.host.feed.reply(GrantList, "grants", ended=self._ended)).grants
        except (SupervisorError, Unreachable) as exc:
            self.host.tell(f"no rules: {exc}", bad=True)
            return
        if self.stands:
            self._show(found)

    def _show(self, found: Sequence[GrantView]) -> None:
        chosen = self.selected
        # What stands comes first, the newest of it on top, as that is what somebody comes to look at.
        self._rules = sorted(sorted(found, key=lambda rule: rule.ts, reverse=True), key=lambda rule: bool(rule.ended))
        if chosen is not None:
            same = (at for at, rule in enumerate(self._rules) if rule.grant == chosen.grant)
            self.list.at = next(same, self.list.at)
        names = self.host.snapshot.names
        now = time.time()
        self.list.set_items([_item(rule, names, now) for rule in self._rules])
        standing = sum(not rule.ended for rule in self._rules)
        gone = f", {len(self._rules) - standing} ended" if self._ended else ""
        count = f"Rules: {standing or 'none'} {'stands' if standing <= 1 else 'stand'}"
        self.query_one("#count", Static).update(count + gone)
        self._tell_all()

    def _tell_all(self) -> None:
        chosen = self.selected
        nothing = [("", _NO_ENDED if self._ended else _NONE)]
        told = grant_lines.facts(chosen, self.host.snapshot.names, time.time()) if chosen is not None else nothing
        self.query_one("#rule", FactList).set_facts(told)
        self.show_keys()

    # -- actions -----------------------------------------------------------------------------------

    def handlers(self) -> Handlers:
        return {
            **in_list(lambda: self, self._nothing),
            "rules.revoke": Handler(self._revoke, self._not_revocable),
            "rules.ended": Handler(self._switch, label=lambda: "hide ended" if self._ended else "show ended"),
            "session.open": Handler(self._open, self._no_session, lambda: "session"),
            "session.reload": Handler(self._reload),
        }

    def _nothing(self) -> str:
        return "" if self._rules else "no rule is listed"

    def _not_revocable(self) -> str:
        rule = self.selected
        if rule is None:
            return "no rule is listed"
        return f"it is {rule.ended} already" if rule.ended in ("revoked", "expired") else ""

    def _no_session(self) -> str:
        rule = self.selected
        if rule is None:
            return self._nothing()
        return "" if self._session_of(rule) else "its sessions are not there any more"

    def _session_of(self, rule: GrantView) -> str:
        """The session of its newest use that is still there, else the one that it was made of."""
        found = [use.sid for use in sorted(rule.uses, key=lambda use: use.ts, reverse=True)]
        return next((sid for sid in [*found, rule.sid] if sid in self.host.snapshot.rows), "")

    def move(self, step: int) -> None:
        """Move the selection by so many rules."""
        self.list.move(step)
        self._tell_all()

    def on_entry_list_moved(self) -> None:
        self._tell_all()

    def _switch(self) -> None:
        self._ended = not self._ended
        self._reload()

    def _open(self) -> None:
        rule = self.selected
        if rule is not None:
            self.host.open_session(self._session_of(rule))

    def _revoke(self) -> None:
        from app.screens.dialogs.dialogs import Confirm

        rule = self.selected
        if rule is None:
            return

        def answered(yes: bool | None) -> None:
            if yes:
                self._ask(f"rule {rule.grant} is revoked; what it covered asks again", "revoke", grant=rule.grant)

        text = (
            "What it covers asks again, at once, also a call that it allowed and that has not started. It covers:"
            f" {'; '.join(rule.words)}"
        )
        self.app.push_screen(Confirm("Revoke the rule", rule.grant, text, "revoke it"), answered)

    def _ask(self, done: str, op: str, **arguments: object) -> None:
        self.host.run_beside(self._change(done, op, arguments))

    async def _change(self, done: str, op: str, arguments: dict[str, object]) -> None:
        await self.host.change(done, op, arguments, "the rule may still stand")
        await self._read()


def _item(rule: GrantView, names: dict[str, str], now: float) -> Item:
    mark = rule.ended or grant_lines.used(rule)
    role = "quiet" if rule.ended else "text"
    return Item(grant_lines.line(rule, names, now), role, mark, grant_lines.last_use(rule, now), "quiet")
