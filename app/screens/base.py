"""What all screens share: running actions, truthful help, and syncing."""

from __future__ import annotations

import time
from collections.abc import Set
from functools import cached_property
from typing import ClassVar

from textual.screen import Screen

from app.action_table.action import EVERYWHERE, Action
from app.action_table.registry import ACTIONS, BY_ID, show_key
from app.client.snapshot import Dirty, Snapshot
from app.framework.application import Host, host_of
from app.framework.handlers import Handler, Handlers
from app.terminal import textual_internals
from app.terminal.clipboard import Selected
from app.terminal.size_classes import size_classes
from widgets.base.help_bar import HelpBar, KeyEntry
from widgets.fleet.fleet_bar import Banner


class WatchScreen(Screen[object]):
    """A screen that shows snapshots. `handlers` says which actions it knows."""

    SCOPES: ClassVar[tuple[str, ...]] = ()
    AUTO_FOCUS: ClassVar[str | None] = None

    LEAVES_FIRST: ClassVar[str] = ""
    """The action that the key back does instead, while it is possible: leaving a filter, say."""

    keys_asked = False
    """The help bar is to be brought up to date at the next turn of the loop."""
    _synced: Snapshot | None = None

    @property
    def host(self) -> Host:
        """The application, as screens see it."""
        return host_of(self.app)

    def __init__(self) -> None:
        super().__init__(classes=size_classes(self.app))
        textual_internals.draw_rows(self)

    # -- actions -----------------------------------------------------------------------------------

    def handlers(self) -> Handlers:
        """What this screen does for the actions of the registry; what it leaves out the application may do."""
        raise NotImplementedError

    @cached_property
    def _own_handlers(self) -> Handlers:
        return self.handlers()

    def handler(self, ident: str) -> Handler | None:
        """Who does this action: this screen, else the application; None when neither knows it."""
        return self._own_handlers.get(ident) or self.host.everywhere.get(ident)

    def can(self, ident: str) -> bool:
        """True when the action exists here (or everywhere) and would do something now."""
        return not self.why_not(ident)

    def why_not(self, ident: str) -> str:
        """Why the action would do nothing here and now, as a sentence; empty when it would do something."""
        if ident == "go.back" and self.LEAVES_FIRST and self.can(self.LEAVES_FIRST):
            return f"{BY_ID[self.LEAVES_FIRST].title.lower()} comes first"
        handler = self.handler(ident)
        if handler is None:
            return "this screen does not do that"
        if (why := handler.why_not()) or not BY_ID[ident].asks or self.host.snapshot.live:
            return why
        return f"the supervisor does not answer, so nothing was sent; {self.host.keys.shown('app.reconnect')} starts it"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "do":
            ident = str(parameters[0])
            return self.can(ident) or self._answers(ident)
        return super().check_action(action, parameters)

    def _answers(self, ident: str) -> bool:
        """True when a key of this impossible action has to say why: nothing else that it means here is possible."""
        if self.handler(ident) is None:
            return False
        keys = self.host.keys.keys
        possible = {key for action in self.active_actions() for key in keys[action.id]}
        return possible.isdisjoint(keys[ident])

    async def action_do(self, ident: str) -> None:
        """Run an action of the registry, or say why that is impossible now.

        What decides must have been pressed by a hand.
        """
        handler = self.handler(ident)
        if handler is None:
            return
        if why := self.why_not(ident):
            self.host.explain(why)
            return
        if BY_ID[ident].decides and (why := await self.host.no_hand(self.host.keys.shown(ident))):
            self.host.tell(why)
            return
        handler.run()
        self.show_keys()
        textual_internals.paint(self)

    def own_actions(self) -> list[Action]:
        """Every action that a key has here, possible now or not, in the registry's order."""
        here = {*self.SCOPES, EVERYWHERE}
        return [a for a in ACTIONS if here & set(a.scopes) and self.handler(a.id) is not None]

    def active_actions(self) -> list[Action]:
        """Every action that a key would run right now, in the registry's order."""
        return [a for a in self.own_actions() if self.can(a.id)]

    def help_entries(self) -> list[KeyEntry]:
        """What the help bar shows, also with regard to what the focused field takes for itself: what works now, by
        rank, and after it what this screen does at other times, with the reason why not now.
        """
        keys = self.host.keys.keys
        works: list[tuple[int, KeyEntry]] = []
        refused: list[tuple[int, KeyEntry]] = []
        possible: set[str] = set()
        for action in ACTIONS:
            own = bool(set(self.SCOPES) & set(action.scopes))
            if not own and EVERYWHERE not in action.scopes:
                continue
            why = self.why_not(action.id)
            if not why:
                possible.update(keys[action.id])
            key = next((k for k in keys[action.id] if not self._taken(k)), None)
            if not action.bar or key is None or (why and not own):
                continue
            entry = KeyEntry(action.id, show_key(key), self.label_of(action), self.refused_now(action.id), not why)
            (refused if why else works).append((action.bar, entry))
        shown = [entry for _, entry in sorted(works, key=lambda e: e[0])]
        for _, entry in sorted(refused, key=lambda e: e[0]):
            if possible.isdisjoint(keys[entry.action]):
                shown.append(entry)
        return shown

    def refused_now(self, ident: str) -> str:
        """Why its key would be refused this moment, for long or until a card was looked at; empty when it would not."""
        handler = self.handler(ident)
        return self.why_not(ident) or ("" if handler is None else handler.not_yet())

    def label_of(self, action: Action) -> str:
        """What the action is called in the help bar now."""
        handler = self.handler(action.id)
        return (handler.label() if handler is not None else "") or action.label

    def _taken(self, key: str) -> bool:
        focused = self.focused
        first = key.split(" ")[0]
        return focused is not None and focused.check_consume_key(first, _typed(first))

    def show_keys(self) -> None:
        """Bring the help bar up to date, once for all that asks for it in one go."""
        if not self.keys_asked:
            self.keys_asked = True
            self.call_later(self._show_keys)

    def _show_keys(self) -> None:
        self.keys_asked = False
        for bar in self.query(HelpBar):
            prefix = self.host.prefix
            if prefix:
                bar.set_standing(self._sequence_entries(prefix))
            else:
                bar.set_standing(self.help_entries())

    def _sequence_entries(self, prefix: str) -> list[KeyEntry]:
        found = [
            (ident, key)
            for (head, key), idents in self.host.keys.sequences.items()
            if head == prefix
            for ident in idents
        ]
        return [
            KeyEntry(ident, show_key(key), BY_ID[ident].label or BY_ID[ident].title.lower())
            for ident, key in found
            if self.can(ident)
        ]

    def on_descendant_focus(self) -> None:
        self.show_keys()

    def on_descendant_blur(self) -> None:
        self.show_keys()

    def on_help_bar_pressed(self, message: HelpBar.Pressed) -> None:
        message.stop()
        self.host.run_beside(self.app.run_action(f"do('{message.action}')", self))

    # -- what is shown -----------------------------------------------------------------------------

    def on_mount(self) -> None:
        self._sync_all()

    @property
    def stands(self) -> bool:
        """True while its widgets are there; one that is being taken down is still attached but has lost some of
        them.
        """
        return self.is_attached and self.is_running

    def on_screen_resume(self) -> None:
        if self.is_mounted:
            self._sync_all()
            self.clock(time.time())  # what it shows of ages stood still while it was covered

    def _sync_all(self) -> None:
        if self._synced is not self.host.snapshot:
            self._synced = self.host.snapshot
            self.sync(self.host.snapshot, Dirty.EVERYTHING)
        self.show_keys()

    def take(self, snapshot: Snapshot, dirty: Dirty) -> bool:
        """Show the snapshot's dirty parts and remember it as shown; True asks for another tick because there is more to
        read.
        """
        # What changed while the screen was covered is caught up with when it is uncovered, so a missed part cannot
        # hide behind this.
        self._synced = snapshot
        return self.sync(snapshot, dirty)

    def sync(self, snapshot: Snapshot, dirty: Dirty) -> bool:
        """Show the snapshot's dirty parts; True asks for another tick because there is more to read."""
        raise NotImplementedError

    def show_link(self, snapshot: Snapshot) -> None:
        """Say in the screen's banner that what it shows is not live, and why."""
        text = "" if snapshot.live else snapshot.link.text
        self.query_one(Banner).say(text, calm=snapshot.link.state == "connecting")

    def sync_logs(self, sids: Set[str] | None) -> bool:
        """Read on in the visible logs of these sessions (None = all); True when there is more to read."""
        return False

    def clock(self, now: float) -> None:
        """Once a second: refresh the ages."""

    def selected_text(self) -> Selected | None:
        """What a key copies; asked often, so the text is made only when it is wanted."""
        return None

    def tell(self, text: str, *, bad: bool) -> bool:
        """Show a notice inside the screen; False leaves it to a toast above the screen."""
        return False


def _typed(key: str) -> str | None:
    """The character that a key types; None for a key that types none."""
    if key == "space":
        return " "
    shown = show_key(key)
    return shown if len(shown) == 1 and shown not in "↑↓←→" else None
