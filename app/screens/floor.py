"""The floor: all sessions on the left, live panes on the right, the head of the queue and the totals below."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Set
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container

from app.models import Dirty, Snapshot
from app.screens.base import bindings
from app.screens.session_commands import SessionCommands
from harness.events.views import NEEDS_YOU, SessionRow
from widgets import tiling
from widgets.fleet_bar import Banner, FleetBar
from widgets.help_bar import HelpBar
from widgets.pane_wall import PaneWall
from widgets.queue_head import QueueHead
from widgets.session_list import SessionList

LAYOUT_FILE = "layout.json"


class FloorScreen(SessionCommands):
    """Everything at a glance; the screen that Watchfloor opens with."""

    SCOPES: ClassVar[tuple[str, ...]] = ("floor", "panes")
    BINDINGS: ClassVar[list[BindingType]] = bindings("floor", "panes")
    AUTO_FOCUS: ClassVar[str | None] = "SessionList"

    def __init__(self) -> None:
        super().__init__()
        self._seqs: dict[str, int] = {}
        self._saved_layout: str | None = None

    def compose(self) -> ComposeResult:
        yield Banner()
        with Container(id="body"):
            yield SessionList()
            yield PaneWall(lambda sid: self.host.folders.session(sid).log)
        yield QueueHead()
        yield FleetBar()
        yield HelpBar()

    # Widgets are looked up on every tick; the query is cached by Textual and costs a microsecond.
    @property
    def list(self) -> SessionList:
        """The list of sessions."""
        return self.query_one(SessionList)

    @property
    def wall(self) -> PaneWall:
        """The panes."""
        return self.query_one(PaneWall)

    # -- what is shown -----------------------------------------------------------------------------

    def on_mount(self) -> None:
        self._load_layout()
        keys = self.host.keys
        self.wall.hint = (
            ("", "No sessions yet"),
            ("", ""),
            (keys.shown("session.launch"), "launch an agent on one of your repositories"),
            (keys.shown("app.help"), "all keys"),
            (keys.shown("app.detach"), "leave; whatever runs goes on"),
            ("", ""),
            ("", 'or from a shell:  watchfloor launch --repo . --goal "…"'),
        )
        super().on_mount()

    def sync(self, snapshot: Snapshot, dirty: Dirty) -> bool:
        more = False
        if dirty & Dirty.ROWS:
            self.list.set_rows(snapshot.rows.values())
            self.wall.follow(self.list.selected)
            self.wall.set_rows(snapshot.rows)
            if self._saved_layout is None:
                self.wall.arrange_by_default()
            grown = {sid for sid, row in snapshot.rows.items() if self._seqs.get(sid) != row.seq}
            self._seqs = {sid: row.seq for sid, row in snapshot.rows.items()}
            more = self.sync_logs(grown)
            self.query_one(QueueHead).set_held(
                [row for row in snapshot.rows.values() if row.group == NEEDS_YOU and row.state != "waiting"]
            )
            self.show_keys()
        elif dirty == Dirty.NOTHING:
            more = self.sync_logs(None)
        if dirty & Dirty.APPROVALS:
            self.query_one(QueueHead).set_queue(snapshot.approvals, self.host.keys.shown("go.queue"))
        if dirty & (Dirty.FLEET | Dirty.LINK):
            self.query_one(FleetBar).set_fleet(snapshot.fleet, live=snapshot.live)
        if dirty & Dirty.LINK:
            self.query_one(Banner).say(
                banner_text(snapshot, self.host.keys.shown("app.reconnect")), calm=snapshot.link.state == "connecting"
            )
        return more

    def sync_logs(self, sids: Set[str] | None) -> bool:
        more = False
        for sid, log in self.wall.visible_logs:
            if sids is None or sid in sids:
                more = bool(log.sync()) or more
        return more

    def clock(self, now: float) -> None:
        self.list.tick(now)
        self.query_one(QueueHead).tick(now)
        self.query_one(FleetBar).tick(now)

    def on_resize(self) -> None:
        if self._saved_layout is None:
            self.call_after_refresh(self.wall.arrange_by_default)

    def on_session_list_moved(self, message: SessionList.Moved) -> None:
        self.wall.follow(message.sid)
        self.show_keys()

    def on_session_list_opened(self, message: SessionList.Opened) -> None:
        self.host.open_session(message.sid)

    def on_pane_wall_opened(self, message: PaneWall.Opened) -> None:
        self.host.open_session(message.sid)

    def on_queue_head_opened(self, message: QueueHead.Opened) -> None:
        self.host.open_queue(message.approval_id)

    # -- selection and focus -----------------------------------------------------------------------

    @property
    def target(self) -> SessionRow | None:
        sid = self.wall.current_session if self.in_panes else self.list.selected
        return self.host.snapshot.rows.get(sid)

    @property
    def in_panes(self) -> bool:
        """True while the panes have the focus."""
        return self.focused is not None and isinstance(self.focused, PaneWall)

    def _in_list(self) -> bool:
        return not self.in_panes and bool(self.list.rows)

    can_list_up = can_list_down = can_list_first = can_list_last = can_focus_panes = _in_list

    def do_list_up(self) -> None:
        self.list.move(-1)

    def do_list_down(self) -> None:
        self.list.move(1)

    def do_list_first(self) -> None:
        self.list.move(-len(self.list.rows))

    def do_list_last(self) -> None:
        self.list.move(len(self.list.rows))

    def do_focus_next(self) -> None:
        (self.list if self.in_panes else self.wall).focus()

    do_focus_previous = do_focus_next

    def do_focus_panes(self) -> None:
        self.wall.focus()

    def can_session_open(self) -> bool:
        return self.target is not None

    def do_session_open(self) -> None:
        if row := self.target:
            self.host.open_session(row.sid)

    can_session_why = can_session_open

    def do_session_why(self) -> None:
        if row := self.target:
            self.host.open_session(row.sid, "why")

    # -- panes -------------------------------------------------------------------------------------

    def _panes(self) -> bool:
        return self.in_panes

    can_pane_left = can_pane_right = can_pane_up = can_pane_down = _panes

    def do_pane_left(self) -> None:
        if not self.wall.move("left"):
            self.list.focus()

    def do_pane_right(self) -> None:
        self.wall.move("right")

    def do_pane_up(self) -> None:
        self.wall.move("up")

    def do_pane_down(self) -> None:
        self.wall.move("down")

    def _any(self) -> bool:
        return bool(self.host.snapshot.rows)

    can_pane_split_right = can_pane_split_below = can_pane_zoom = _any

    def do_pane_split_right(self) -> None:
        self._split(across=True)

    def do_pane_split_below(self) -> None:
        self._split(across=False)

    def _split(self, *, across: bool) -> None:
        if not self.wall.split(across=across):
            self.host.tell(
                "this pane is too small to split" if not self.wall.zoomed else "give the zoomed pane back first"
            )

    def _several(self) -> bool:
        return self._any() and isinstance(self.wall.tiles, tiling.Split)

    can_pane_close = can_pane_wider = can_pane_narrower = can_pane_taller = can_pane_shorter = can_pane_even = _several

    def do_pane_close(self) -> None:
        self.wall.close_pane()

    def do_pane_zoom(self) -> None:
        self.wall.zoomed = not self.wall.zoomed
        self.sync_logs(None)

    def can_pane_pin(self) -> bool:
        return self._any()

    def do_pane_pin(self) -> None:
        if self.list.selected:
            self.wall.show(self.list.selected)

    def do_pane_wider(self) -> None:
        self.wall.grow(across=True, delta=50)

    def do_pane_narrower(self) -> None:
        self.wall.grow(across=True, delta=-50)

    def do_pane_taller(self) -> None:
        self.wall.grow(across=False, delta=50)

    def do_pane_shorter(self) -> None:
        self.wall.grow(across=False, delta=-50)

    def do_pane_even(self) -> None:
        self.wall.even()

    def do_pane_page_up(self) -> None:
        self._scroll(-1)

    def do_pane_page_down(self) -> None:
        self._scroll(1)

    def _scroll(self, pages: int) -> None:
        if (log := self.wall.current_log()) is not None:
            log.action_page(pages)

    can_pane_page_up = can_pane_page_down = _any

    # -- the layout, kept per user -----------------------------------------------------------------

    @property
    def _layout_path(self) -> Path:
        return self.host.folders.state / LAYOUT_FILE

    def _load_layout(self) -> None:
        try:
            text = self._layout_path.read_text("utf-8")
            self.wall.tiles = tiling.from_data(json.loads(text))
            self._saved_layout = text
        except FileNotFoundError:
            return  # nobody arranged the wall yet
        except (OSError, ValueError) as exc:
            self.host.tell(f"the saved layout {self._layout_path} cannot be used ({exc}); starting with a fresh one")

    def on_pane_wall_changed(self) -> None:
        text = json.dumps(tiling.to_data(self.wall.tiles))
        if text == self._saved_layout:
            return
        self._saved_layout = text
        self.show_keys()
        path = self._layout_path
        part = path.with_name(f".{LAYOUT_FILE}.{os.getpid()}")
        try:
            part.write_text(text, "utf-8")
            part.replace(path)
        except OSError as exc:
            self.host.tell(f"the layout cannot be saved in {path}: {exc.strerror or exc}", bad=True)


def banner_text(snapshot: Snapshot, key: str) -> str:
    """The sentence above everything while the supervisor does not answer; empty while it does."""
    link = snapshot.link
    if link.state in ("live", "mute"):
        return link.text
    return (
        f"{link.text} · shown as of {time.strftime('%H:%M:%S')} · {key} starts it"
        if link.state == "lost"
        else f"{link.text} · {key} starts it"
    )
