"""What all screens share: bindings from the registry, truthful help, syncing, and the commands on a session."""

from __future__ import annotations

import time
from collections.abc import Set
from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual.binding import Binding, BindingType
from textual.screen import ModalScreen, Screen

from app import requests
from app.actions import ACTIONS, BY_ID, EVERYWHERE, Action, show_key
from app.models import Dirty, Snapshot
from harness.events.views import SessionRow
from harness.protocol import config as configuration
from harness.protocol.client import SupervisorError, Unreachable
from widgets.help_bar import HelpBar

if TYPE_CHECKING:
    from app.watch_app import WatchApp


def handler_name(ident: str) -> str:
    """``session.pause`` → ``do_session_pause``."""
    return "do_" + ident.replace(".", "_")


def bindings(*scopes: str, priority: bool = False) -> list[BindingType]:
    """The registry's bindings of these scopes, by action id so that the keymap can change them."""
    return [
        Binding(",".join(a.keys), f"do('{a.id}')", a.title, show=False, id=a.id, priority=priority)
        for a in ACTIONS
        if set(scopes) & set(a.scopes)
    ]


class WatchScreen(Screen[Any]):
    """A screen that shows snapshots. Actions are methods ``do_<id>``; ``can_<id>`` says whether one makes sense now."""

    SCOPES: ClassVar[tuple[str, ...]] = ()
    AUTO_FOCUS: ClassVar[str | None] = None

    _keys_asked = False
    _synced: Snapshot | None = None

    @property
    def host(self) -> WatchApp:
        """The application, as what it is."""
        return cast("WatchApp", self.app)

    # -- actions -----------------------------------------------------------------------------------

    def can(self, ident: str) -> bool:
        """True when the action exists here (or everywhere) and would do something now."""
        if hasattr(self, handler_name(ident)):
            check = getattr(self, "can_" + ident.replace(".", "_"), None)
        elif hasattr(self.host, handler_name(ident)) and not self.is_modal:
            check = getattr(self.host, "can_" + ident.replace(".", "_"), None)
        else:
            return False
        return bool(check()) if check is not None else True

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "do":
            return self.can(str(parameters[0]))
        return super().check_action(action, parameters)

    async def action_do(self, ident: str) -> None:
        """Run an action of the registry, this screen's own or the application's.

        What decides must have been pressed by a hand.
        """
        if BY_ID[ident].decides and (why := await self.host.no_hand(ident)):
            self.host.tell(why)
            return
        getattr(self if hasattr(self, handler_name(ident)) else self.host, handler_name(ident))()
        self.show_keys()

    def active_actions(self) -> list[Action]:
        """Every action that a key would run right now, in the registry's order."""
        here = {*self.SCOPES, EVERYWHERE}
        return [a for a in ACTIONS if here & set(a.scopes) and self.can(a.id)]

    def help_entries(self) -> list[tuple[str, str, str]]:
        """(action, key, label) for the help bar: only what works now, also with regard to what the focused field takes
        for itself.
        """
        entries: list[tuple[int, tuple[str, str, str]]] = []
        for action in self.active_actions():
            key = next((k for k in self.host.keys.keys[action.id] if not self._taken(k)), None)
            if action.bar and key is not None:
                entries.append((action.bar, (action.id, show_key(key), action.label)))
        return [entry for _, entry in sorted(entries, key=lambda e: e[0])]

    def _taken(self, key: str) -> bool:
        focused = self.focused
        first = key.split(" ")[0]
        character = (
            " " if first == "space" else shown if len(shown := show_key(first)) == 1 and shown not in "↑↓←→" else None
        )
        return focused is not None and focused.check_consume_key(first, character)

    def show_keys(self) -> None:
        """Bring the help bar up to date, once for all that asks for it in one go."""
        if not self._keys_asked:
            self._keys_asked = True
            self.call_later(self._show_keys)

    def _show_keys(self) -> None:
        self._keys_asked = False
        for bar in self.query(HelpBar):
            prefix = self.host.prefix
            if prefix:
                bar.set_entries(self._sequence_entries(prefix))
            else:
                bar.set_entries(self.help_entries())

    def _sequence_entries(self, prefix: str) -> list[tuple[str, str, str]]:
        found = [
            (ident, key)
            for (head, key), idents in self.host.keys.sequences.items()
            if head == prefix
            for ident in idents
        ]
        return [
            (ident, show_key(key), BY_ID[ident].label or BY_ID[ident].title.lower())
            for ident, key in found
            if self.can(ident)
        ]

    def on_descendant_focus(self) -> None:
        self.show_keys()

    def on_descendant_blur(self) -> None:
        self.show_keys()

    def on_help_bar_pressed(self, message: HelpBar.Pressed) -> None:
        message.stop()
        self.host.run_beside(_run(self.host, message.action, self))

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

    def sync_logs(self, sids: Set[str] | None) -> bool:
        """Read on in the visible logs of these sessions (None = all); True when there is more to read."""
        return False

    def clock(self, now: float) -> None:
        """Once a second: refresh the ages."""

    def tell(self, text: str, *, bad: bool) -> bool:
        """Show a notice inside the screen; False leaves it to a toast above the screen."""
        return False


async def _run(app: WatchApp, ident: str, target: Any) -> None:
    await app.run_action(f"do('{ident}')", target)


class SessionCommands(WatchScreen):
    """Pause, resume, continue, stop, remove, undo and say, for the session that the screen is about (`target`)."""

    @property
    def target(self) -> SessionRow | None:
        """The session that commands apply to."""
        raise NotImplementedError

    def can_session_pause(self) -> bool:
        row = self.target
        return row is not None and row.desired == "running" and row.state not in ("done", "stopped", "failed")

    def do_session_pause(self) -> None:
        if row := self.target:
            request = requests.desire(self.host.folders, row.sid, "paused")
            self.host.send(f"{row.name}: pausing at its next turn", "desire", **request)

    def can_session_resume(self) -> bool:
        row = self.target
        return (
            row is not None
            and not row.ended
            and row.desired != "stopped"
            and (row.desired == "paused" or row.state in ("failed", "parked"))
        )

    def do_session_resume(self) -> None:
        row = self.target
        if row is None:
            return
        try:
            request = requests.desire(self.host.folders, row.sid, "running")
        except configuration.ConfigError as exc:
            self.host.tell(f"{row.name} was not resumed: {exc}", bad=True)
            return
        self.host.send(f"{row.name}: resuming", "desire", **request)

    def can_session_continue(self) -> bool:
        row = self.target
        return row is not None and row.ended

    def do_session_continue(self) -> None:
        from app.screens.going_on import ContinueDialog

        if row := self.target:
            self.host.push_screen(ContinueDialog(row))

    def can_session_stop(self) -> bool:
        row = self.target
        return row is not None and not row.ended and row.desired != "stopped"

    def do_session_stop(self) -> None:
        if row := self.target:
            self._ask_stop(row)

    def _ask_stop(self, row: SessionRow) -> None:
        from app.screens.dialogs import Confirm

        text = (
            "What runs now is killed and its agent ends. The worktree, the branch and the log stay; only continuing"
            " takes it up again."
        )

        def decided(yes: bool | None) -> None:
            if yes:
                request = requests.desire(self.host.folders, row.sid, "stopped", "stopped by you")
                self.host.send(f"{row.name}: stopping", "desire", **request)

        self.host.push_screen(Confirm("Stop", row.name, text, "stop it"), decided)

    def can_session_remove(self) -> bool:
        row = self.target
        return row is not None and row.state in ("done", "stopped", "failed")

    def do_session_remove(self) -> None:
        from app.screens.dialogs import Confirm

        row = self.target
        if row is None:
            return

        def decided(yes: bool | None) -> None:
            if yes:
                self.host.send(f"{row.name}: removed", "remove", sid=row.sid)

        text = "Its worktree is deleted. That is refused while it holds work that is neither committed nor pushed."
        self.host.push_screen(Confirm("Remove", row.name, text, "remove it"), decided)

    def can_session_undo(self) -> bool:
        row = self.target
        return row is not None and row.tool_calls > 0

    def do_session_undo(self) -> None:
        if row := self.target:
            self.host.run_beside(self._ask_undo(row))

    async def _ask_undo(self, row: SessionRow) -> None:
        import msgspec

        from app.screens.undo import UndoDialog, points_of

        try:
            points = points_of(await self.host.feed.call("undo_points", sid=row.sid))
        except (SupervisorError, Unreachable, msgspec.ValidationError) as exc:
            self.host.tell(f"{row.name}: {exc}", bad=True)
            return
        if not points:
            self.host.tell(f"{row.name}: nothing to undo; no call may have changed a file yet")
            return

        def chosen(call_id: str | None) -> None:
            if call_id is not None:
                self.host.run_beside(self._undo(row, call_id))

        if self.host.screen is self:  # not above a question that was opened meanwhile
            self.host.push_screen(UndoDialog(row.name, points, time.time()), chosen)

    async def _undo(self, row: SessionRow, call_id: str) -> None:
        from app.screens.undo import names

        try:
            reply = await self.host.feed.call("undo", sid=row.sid, to=call_id)
        except (SupervisorError, Unreachable) as exc:
            self.host.tell(f"{row.name}: {exc}", bad=True)
            return
        refused = int(reply.get("refused_count", 0))
        left = f"; {names(refused)} could not be brought back" if refused else ""
        done = (
            f"undone to before {reply.get('to', call_id)}: {names(int(reply.get('restored', 0)))} brought back,"
            f" {names(int(reply.get('removed', 0)))} removed"
        )
        self.host.tell(f"{row.name}: {done}{left}", bad=bool(refused))

    def can_session_say(self) -> bool:
        row = self.target
        return row is not None and not row.ended and row.desired != "stopped"

    def do_session_say(self) -> None:
        from app.screens.dialogs import Ask

        row = self.target
        if row is None:
            return

        def written(text: str | None) -> None:
            if text:
                self.host.send(f"{row.name}: will read it at its next turn", "say", **requests.say(row.sid, text))

        self.host.push_screen(Ask("Say to", row.name, "Your message is part of its next turn.", lines=True), written)


class Form(ModalScreen[Any]):
    """A dialog: its own keys win over those of its fields, everything below is unreachable while it is open."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("form", priority=True)

    @property
    def host(self) -> WatchApp:
        """The application, as what it is."""
        return cast("WatchApp", self.app)

    async def action_do(self, ident: str) -> None:
        """Run an action of the registry. What decides must have been pressed by a hand."""
        if BY_ID[ident].decides and (why := await self.host.no_hand(ident)):
            self.complain(why)
            return
        getattr(self, handler_name(ident))()

    def complain(self, text: str) -> None:
        """Say why nothing was done; dialogs say it inline."""
        self.host.tell(text)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "do":
            return hasattr(self, handler_name(str(parameters[0])))
        return super().check_action(action, parameters)

    def do_form_cancel(self) -> None:
        self.dismiss(None)
