"""The application: owns the feed, the one tick, the keymap and the walls; screens show what it tells them."""

from __future__ import annotations

import asyncio
import gc
import os
import time
from collections.abc import Coroutine, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar

from textual import events
from textual.app import App
from textual.binding import Binding, BindingType
from textual.filter import LineFilter
from textual.screen import Screen
from textual.timer import Timer

from app.action_table.action import EVERYWHERE
from app.client.feed import PATIENCE, Feed, Patience
from app.client.snapshot import Dirty, FirstLook, Snapshot
from app.framework.application import Host
from app.framework.handlers import Handler, Handlers, bindings
from app.input.keymap import Keymap
from app.input.typing_pace import MACHINE_GAP_S, Pace, news_after_key
from app.screens.base import WatchScreen
from app.shell.navigation import FLOOR, Opening, Places
from app.terminal import cell_table, clipboard, textual_internals, themes
from app.terminal.attention import Attention
from app.terminal.clipboard import Selected
from app.terminal.terminal_filters import NoControl, quiet_driver
from harness.domain.text.display_safe import to_display
from harness.protocol.client import SupervisorError, Unreachable
from harness.protocol.config.sections import NotifyConfig
from harness.protocol.connection.transport import Transport
from harness.protocol.paths import Folders

TICK_HZ = 25
_NOTICE_S = 4.0
_BAD_NOTICE_S = 8.0


class WatchApp(App[int]):
    """The terminal control room. Has no authority and no state but the view."""

    CSS_PATH = "app.tcss"
    TITLE = "watchfloor"
    ENABLE_COMMAND_PALETTE = False  # the palette is bound by the registry, with our own provider
    HORIZONTAL_BREAKPOINTS = [(0, "-narrow"), (80, "-normal"), (120, "-wide"), (180, "-vast")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (32, "-tall")]
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings(EVERYWHERE),
        Binding("ctrl+c", "say_how_to_leave", "", show=False),
    ]

    def __init__(
        self,
        folders: Folders,
        keymap: Keymap,
        *,
        theme: str = "dark",
        opening: Opening = FLOOR,
        first: FirstLook | None = None,
        patience: Patience = PATIENCE,
        transport: Transport | None = None,
        notify: NotifyConfig | None = None,
    ) -> None:
        self.pace = Pace()
        cell_table.install()
        super().__init__(driver_class=quiet_driver(self.pace))
        self.folders = folders
        self.keys = keymap
        self.feed = Feed(folders, self.wake, first, patience, transport)
        self.no_control = NoControl()
        self.prefix = ""
        self.drafts: dict[str, str] = {}
        self.frames = 0
        self._first_session = opening.session
        self._away = opening.away
        self.attention = Attention(
            self.feed,
            self.pace,
            notify or NotifyConfig(),
            os.environ,
            to_terminal=self.to_terminal,
            in_focus=lambda: self.app_focus,
            beside=self.run_beside,
        )
        self._ticker: Timer | None = None
        self._quiet_ticks = 0
        self._not_before = 0.0
        self._synced_at = 0.0
        self._came = False
        self._explained = ""
        self._explained_until = 0.0
        for made in themes.themes():
            self.register_theme(made)
        self.theme = theme
        self.set_keymap(keymap.bindings())

    # -- life --------------------------------------------------------------------------------------

    def get_default_screen(self) -> Screen[object]:
        from app.screens.floor import FloorScreen

        return FloorScreen()

    def get_line_filters(self) -> Sequence[LineFilter]:
        return [*super().get_line_filters(), self.no_control]

    def on_mount(self) -> None:
        self._ticker = self.set_interval(1 / TICK_HZ, self._tick, pause=True)
        self.set_interval(1.0, self._clock)
        self.feed.start()
        self.wake()

    async def on_unmount(self) -> None:
        self.attention.leave()
        await self.feed.aclose()

    @property
    def snapshot(self) -> Snapshot:
        """What is known now."""
        return self.feed.snapshot

    def log_of(self, sid: str) -> LogSource:
        """Its log: from the disk when that is ours to read, else asked of the supervisor."""
        from app.client.records import readable
        from widgets.log.log_rows import on_disk

        folder = self.folders.session(sid)
        if readable(self.feed.transport, folder.root):
            return on_disk(folder.log)
        from app.client.remote_log import AskedIndex

        return partial(AskedIndex, sid, self.feed.call, self._records_came)

    def _records_came(self) -> None:
        self._came = True
        self.wake()

    def post_display_hook(self) -> None:
        if not self.frames:
            gc.enable()
            gc.freeze()
            time.sleep(
                0
            )  # the thread that writes it out needs the interpreter, which loading what panes show would keep
            self.call_later(self._take_short_turns)
        self.frames += 1

    def _take_short_turns(self) -> None:
        if self.is_headless:
            return
        from app.terminal import (
            scheduler_hints,  # with what it needs to speak to the kernel: no first paint waits for that
        )

        scheduler_hints.take()
        self.app_resume_signal.subscribe(self, lambda _: scheduler_hints.take())  # its threads are others then

    @property
    def idle(self) -> bool:
        """True when everything known is on screen and the tick sleeps."""
        return self._quiet_ticks >= 0 and not self.feed.dirty

    # -- the one tick ------------------------------------------------------------------------------

    def wake(self) -> None:
        """Something became dirty: sync now and keep ticking until nothing is dirty any more."""
        if self._ticker is None:
            return
        if self._quiet_ticks < 0:
            return
        self._quiet_ticks = -1
        self._ticker.resume()
        self.call_later(self._tick)

    def _tick(self) -> None:
        begin = time.monotonic()
        if begin < self._not_before:
            return
        self._synced_at = begin
        dirty = self.feed.take_dirty()
        more = False
        came = self._came
        self._came = False
        for screen in self.shown_screens():
            more = screen.take(self.feed.snapshot, dirty) or more
            if came:
                more = screen.sync_logs(None) or more
        if dirty & Dirty.ROWS and (self._first_session is not None or self._away):
            self._open_first()
        # Keys come first: under a flood at most a third of the time goes into syncing.
        end = time.monotonic()
        self._not_before = end + 2 * (end - begin)
        if not dirty and not more and self._ticker is not None:
            self._quiet_ticks = 0
            self._ticker.pause()

    def _clock(self) -> None:
        """Once a second: ages move on; without a supervisor nobody tells us of new events, so the logs are looked at
        here.
        """
        now = time.time()
        for screen in self.shown_screens():
            screen.clock(now)
            if not self.snapshot.live:
                screen.sync_logs(None)
        if self.snapshot.live:
            self.attention.look(now)

    def to_terminal(self, sequences: str) -> None:
        textual_internals.write(self, sequences)

    def shown_screens(self) -> list[WatchScreen]:
        """The screens that can be seen: the top one, and what lies under it as far as it is modal."""
        shown: list[WatchScreen] = []
        if not self.is_running:
            return shown  # the application is being taken down: its screens have lost widgets already
        for screen in reversed(self.screen_stack if self._screen_stacks else []):
            if isinstance(screen, WatchScreen) and screen.is_mounted:
                shown.append(screen)
            if not screen.is_modal:
                break
        return shown

    def _open_first(self) -> None:
        sid = self._first_session
        self._first_session = None
        away = self._away and bool(self.snapshot.rows)
        self._away = False
        if away and sid is None and len(self.screen_stack) == 1:
            self._places.look_back("brief")
        if sid is not None and sid in self.snapshot.rows:
            self.open_session(sid)

    # -- keys --------------------------------------------------------------------------------------

    async def on_event(self, event: events.Event) -> None:
        if not event.is_forwarded:
            self._note(event)
        if isinstance(event, events.Key) and not event.is_forwarded and await self._sequence(event.key):
            return
        await super().on_event(event)

    def input_age(self) -> float:
        """Seconds since the input that is being handled was made: a busy screen may handle a key long after it was
        pressed.
        """
        return max(0.0, time.monotonic() - self.pace.pressed)

    def _note(self, event: events.Event) -> None:
        if isinstance(event, events.Key):
            self.pace.note(event.key, event.time)
            self._not_before = news_after_key(self._not_before, time.monotonic(), self._synced_at)
        elif isinstance(event, (events.MouseDown, events.MouseUp)):
            self.pace.note(type(event).__name__, event.time)
        elif isinstance(event, events.Paste):
            self.pace.pasted(event.time)

    async def _sequence(self, key: str) -> bool:
        """Handle sequences such as ``ctrl+b z``; True when the key was part of one."""
        if self.prefix:
            prefix = self.prefix
            self.prefix = ""
            self._show_keys()
            await self._run_first(self.keys.sequences.get((prefix, key), []))
            return True
        if (
            key in self.keys.prefixes
            and not self.screen.is_modal
            and (self.focused is None or not self.focused.check_consume_key(key, None))
        ):
            self.prefix = key
            self._show_keys()
            return True
        return False

    async def _run_first(self, idents: Sequence[str]) -> None:
        """Run the first of these actions that is possible now; when none is, the first that is known says why."""
        screen = self.screen
        if not isinstance(screen, WatchScreen):
            return
        known = [ident for ident in idents if screen.handler(ident) is not None]
        chosen = next((ident for ident in known if screen.can(ident)), known[0] if known else "")
        if chosen:
            await screen.action_do(chosen)

    def _show_keys(self) -> None:
        if isinstance(self.screen, WatchScreen):
            self.screen.show_keys()

    async def no_hand(self, key: str) -> str:
        """Why the key or click now handled must not decide (`Pace`); empty when a hand pressed it. ``key`` in words.

        Waits to see what comes right behind it.
        """
        named = key or "the key"
        if why := self.pace.refusal(named):
            return why
        await asyncio.sleep(MACHINE_GAP_S)
        return self.pace.crowded(named)

    # -- actions -----------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "do":
            screen = self.screen
            return screen.check_action(action, parameters) if isinstance(screen, WatchScreen) else False
        return super().check_action(action, parameters)

    async def action_do(self, ident: str) -> None:
        """Run an action of the registry on the screen in front, which knows what it refines."""
        if isinstance(self.screen, WatchScreen):
            await self.screen.action_do(ident)

    def action_say_how_to_leave(self) -> None:
        """Ctrl+C is pressed by reflex; it must neither leave nor stop anything."""
        self.tell(f"{self.keys.shown('app.detach')} detaches; every agent goes on")

    def handlers(self) -> Handlers:
        """What the application does for the actions of the registry."""
        return {
            "app.detach": Handler(lambda: self.exit(0)),
            "app.palette": Handler(self._open_palette),
            "app.help": Handler(self._open_help),
            "app.theme": Handler(self._next_theme),
            "app.copy": Handler(self._copy, self._nothing_to_copy),
            "app.copy_name": Handler(self._copy_name, self._no_name),
            "app.reconnect": Handler(lambda: self.feed.reconnect(start=True), self._connected),
            **self._places.handlers(),
        }

    @cached_property
    def _places(self) -> Places:
        return Places(self, lambda: self.folders.state, lambda: self.keys.shown("app.detach"), self._forget_hints)

    @cached_property
    def everywhere(self) -> Handlers:
        """What works on every screen that does not do it itself."""
        return self.handlers()

    def _connected(self) -> str:
        return "the supervisor is connected" if self.snapshot.live else ""

    def _selected(self) -> Selected | None:
        screen = self.screen
        return (
            screen.selected_text() if isinstance(screen, WatchScreen) and screen.is_mounted and screen.stands else None
        )

    def _nothing_to_copy(self) -> str:
        return "" if self._selected() is not None else "nothing is selected that could be copied"

    def _no_name(self) -> str:
        found = self._selected()
        return "" if found is not None and found.name else "nothing is selected that has an id"

    def _copy(self) -> None:
        if found := self._selected():
            self._to_clipboard(found.what, found.text())

    def _copy_name(self) -> None:
        if found := self._selected():
            self._to_clipboard("its id", clipboard.lines([found.name]))

    def _to_clipboard(self, what: str, text: str) -> None:
        in_tmux = "TMUX" in os.environ
        made = clipboard.cut(text)
        self.to_terminal(clipboard.sequence(made.text, in_tmux=in_tmux))
        self.tell(clipboard.told(what, made, in_tmux=in_tmux))

    def _next_theme(self) -> None:
        self.theme = themes.following(self.theme)
        themes.remember(self.folders.state / themes.FILE, self.theme)

    def _open_palette(self) -> None:
        from app.shell.commands import open_palette

        open_palette(self)

    def _open_help(self) -> None:
        from app.shell import help as keys_of

        screen = self.screen
        if isinstance(screen, WatchScreen):
            self.push_screen(keys_of.HelpScreen(keys_of.lines(self.keys, screen.SCOPES, screen.refused_now)))

    def open_queue(self, approval_id: str) -> None:
        """Show the queue, on this request when one is named."""
        self._places.queue(approval_id)

    def open_session(self, sid: str, tab: str = "") -> None:
        """Show one session."""
        self._places.session(sid, tab)

    def open_review(self, sid: str) -> None:
        """Show the work of one session, with what was viewed and said of it before."""
        self._places.review(sid)

    def comments_kept(self, sid: str) -> int:
        """How many comments on the work of one session were not sent back to it."""
        return self._places.comments_kept(sid)

    # -- requests ----------------------------------------------------------------------------------

    def tell(self, text: str, *, bad: bool = False) -> None:
        """A short notice. The text is untrusted: it is displayed safely and never parsed as markup."""
        screen = next((s for s in self.shown_screens() if s.tell(text, bad=bad)), None)
        if screen is not None:
            return
        self.notify(
            to_display(text, limit=400),
            severity="error" if bad else "information",
            markup=False,
            timeout=_BAD_NOTICE_S if bad else _NOTICE_S,
        )

    def _forget_hints(self) -> None:
        """Take away what was said in passing; what went wrong stays until it was read."""
        for said in list(self._notifications):
            if said.severity == "information":
                self._unnotify(said)

    def explain(self, why: str) -> None:
        """Say why a key does nothing now; while that is shown, pressing on does not say it again."""
        now = time.monotonic()
        if why != self._explained or now >= self._explained_until:
            self._explained = why
            self._explained_until = now + _NOTICE_S
            self.tell(why)

    def send(self, done: str, op: str, **arguments: object) -> None:
        """Send a request beside everything else; say what the reply notes, else ``done``, or why it was refused."""
        self.run_beside(self.change(done, op, arguments))

    async def change(self, done: str, op: str, arguments: Mapping[str, object], unsure: str = "") -> None:
        """As `send`, and come back when that was said; ``unsure`` is what may hold all the same when no answer came."""
        try:
            reply = await self.feed.call(op, **arguments)
        except SupervisorError as exc:
            self.tell(str(exc), bad=True)
        except Unreachable as exc:
            self.tell(f"{exc.message}; {unsure}" if unsure else str(exc), bad=True)
        else:
            if note := reply.get("note"):
                self.tell(str(note))
            elif done:
                self.tell(done)

    def run_beside(self, work: Coroutine[object, object, object]) -> None:
        """Run a coroutine owned by the app, without holding up keys."""
        self.run_worker(work, group="requests")


if TYPE_CHECKING:
    from widgets.log.log_rows import LogSource

    def _as_host(app: WatchApp) -> Host:
        """Has the type checker compare the application with what its screens ask of it."""
        return app
