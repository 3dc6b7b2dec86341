"""The floor: all sessions on the left, live panes on the right, the head of the queue and the totals below."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Set
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container

from app.client.snapshot import Dirty, Snapshot
from app.framework.handlers import Handler, Handlers, bindings, in_list
from app.screens.session_commands import SessionCommands
from harness.domain.text import formatting
from harness.linux import durable
from harness.views.session_views import ERRORS, FleetView, SessionRow
from widgets.base.help_bar import HelpBar
from widgets.fleet.fleet_bar import Banner, FleetBar
from widgets.panes import tiling
from widgets.panes.pane_wall import PaneWall
from widgets.queue.queue_head import QueueHead
from widgets.session.session_list import SessionList

if TYPE_CHECKING:
    from app.screens.plan_panes import PlanPanes

LAYOUT_FILE = "layout.json"
LIST_FILE = "list.json"
_TWO_COLUMNS = 80
"""Cells from which on the list stands beside the panes and not above them."""
_LEAST_LIST = 24


class FloorScreen(SessionCommands):
    """Everything at a glance; the screen that Watchfloor opens with."""

    SCOPES: ClassVar[tuple[str, ...]] = ("floor", "panes")
    BINDINGS: ClassVar[list[BindingType]] = bindings("floor", "panes")
    AUTO_FOCUS: ClassVar[str | None] = "SessionList"

    def __init__(self) -> None:
        super().__init__()
        self._seqs: dict[str, int] = {}
        self._saved_layout: str | None = None
        self._widths: dict[str, int] = {}
        self._aged = 0.0
        self._plans: PlanPanes | None = None

    def compose(self) -> ComposeResult:
        yield Banner()
        with Container(id="body"):
            yield SessionList()
            yield PaneWall(self.host.log_of)
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
        self._load_widths()
        self._widen(self._widths.get(self._tier))
        super().on_mount()

    def _show_hint(self, fleet: FleetView) -> None:
        """What stands in the panes while there is no session."""
        keys = self.host.keys
        had = fleet.spent_total_nano > 0
        self.wall.hint = (
            ("", "No sessions now" if had else "No sessions yet"),
            ("", ""),
            (keys.shown("session.launch"), "launch an agent on a repository"),
            (keys.shown("app.help"), "all keys"),
            (keys.shown("app.detach"), "leave; whatever runs goes on"),
            ("", ""),
            ("", "those that were removed:" if had else "or from a shell:"),
            ("", "watchfloor ls --archived" if had else 'watchfloor launch --repo . --goal "…"'),
        )

    def sync(self, snapshot: Snapshot, dirty: Dirty) -> bool:
        more = False
        if dirty & Dirty.ROWS:
            before = self._chosen
            self.list.set_rows(snapshot.rows.values())
            self.wall.follow(self.list.selected)
            self.wall.set_rows(snapshot.rows)
            if before and before != self._chosen:
                self.swapped()
            if self._saved_layout is None:
                self.wall.arrange_by_default()
            grown = {sid for sid, row in snapshot.rows.items() if self._seqs.get(sid) != row.seq}
            self._seqs = {sid: row.seq for sid, row in snapshot.rows.items()}
            more = self.sync_logs(grown)
            self.query_one(QueueHead).set_held([row for row in snapshot.rows.values() if row.group == ERRORS])
            self.show_keys()
        elif dirty == Dirty.NOTHING:
            more = self.sync_logs(None)
        if dirty & (Dirty.APPROVALS | Dirty.ROWS):
            waiting = [item.ts for item in snapshot.needs() if item.deferred is None]
            self.query_one(FleetBar).set_oldest(min(waiting, default=""))
        if dirty & Dirty.APPROVALS:
            self.query_one(QueueHead).set_queue(snapshot.approvals, self.host.keys.shown("go.queue"))
        if dirty & (Dirty.FLEET | Dirty.LINK):
            self.query_one(FleetBar).set_fleet(snapshot.fleet, live=snapshot.live)
            self._show_hint(snapshot.fleet)
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
        if (step := now // formatting.AGES_S) != self._aged:
            self._aged = step
            self.list.tick(now)
            self.query_one(QueueHead).tick(now)
        self.wall.tick()
        self._look_at_plans()
        self.query_one(FleetBar).tick(now)

    def on_resize(self) -> None:
        self._widen(self._widths.get(self._tier))
        if self._saved_layout is None:
            self.call_after_refresh(self.wall.arrange_by_default)

    def on_session_list_moved(self, message: SessionList.Moved) -> None:
        self.call_after_refresh(self._follow, message.sid)  # the selection is seen first, then what it leads to

    def _follow(self, sid: str) -> None:
        if self.stands and self.list.selected == sid:
            self.wall.follow(sid)
            self.show_keys()

    def on_session_list_opened(self, message: SessionList.Opened) -> None:
        self.host.open_session(message.sid)

    def on_pane_wall_opened(self, message: PaneWall.Opened) -> None:
        self.host.open_session(message.sid)

    def on_queue_head_opened(self, message: QueueHead.Opened) -> None:
        self.host.open_queue(message.approval_id)

    # -- actions -----------------------------------------------------------------------------------

    @property
    def target(self) -> SessionRow | None:
        return self.host.snapshot.rows.get(self._chosen)

    @property
    def _chosen(self) -> str:
        return self.wall.current_session if self.in_panes else self.list.selected

    @property
    def in_panes(self) -> bool:
        """True while the panes have the focus."""
        return self.focused is not None and isinstance(self.focused, PaneWall)

    def handlers(self) -> Handlers:
        of_session = {
            **super().handlers(),
            "session.open": Handler(self._open, self._nothing_selected),
            "session.why": Handler(lambda: self._open("why"), self._nothing_selected),
        }
        return {
            **{ident: self.on_what_was_seen(handler) for ident, handler in of_session.items()},
            **in_list(lambda: self.list, self._not_in_list),
            "focus.next": Handler(self._other_part),
            "focus.previous": Handler(self._other_part),
            "focus.panes": Handler(lambda: self.wall.focus(), self._not_in_list),
            "pane.left": Handler(self._pane_left, self._not_in_panes),
            "pane.right": Handler(lambda: self.wall.move("right"), self._not_in_panes),
            "pane.up": Handler(lambda: self.wall.move("up"), self._not_in_panes),
            "pane.down": Handler(lambda: self.wall.move("down"), self._not_in_panes),
            "pane.split_right": Handler(lambda: self.wall.split(across=True), lambda: self._no_split(across=True)),
            "pane.split_below": Handler(lambda: self.wall.split(across=False), lambda: self._no_split(across=False)),
            "pane.close": Handler(lambda: self.wall.close_pane(), self._one_pane),
            "pane.zoom": Handler(self._zoom, self._no_session),
            "view.raw": Handler(self._toggle_raw, self._no_session),
            "view.plan": Handler(self._toggle_plan, self._no_plan),
            "pane.pin": Handler(self._pin, self._no_session),
            "pane.wider": Handler(lambda: self.wall.grow(across=True, delta=50), self._one_pane),
            "pane.narrower": Handler(lambda: self.wall.grow(across=True, delta=-50), self._one_pane),
            "pane.taller": Handler(lambda: self.wall.grow(across=False, delta=50), self._one_pane),
            "pane.shorter": Handler(lambda: self.wall.grow(across=False, delta=-50), self._one_pane),
            "pane.even": Handler(lambda: self.wall.even(), self._one_pane),
            "pane.page_up": Handler(lambda: self._turn_page(-1), self._no_session),
            "pane.page_down": Handler(lambda: self._turn_page(1), self._no_session),
        }

    # -- why not -----------------------------------------------------------------------------------

    def _no_session(self) -> str:
        return "" if self.host.snapshot.rows else "there is no session yet"

    def _nothing_selected(self) -> str:
        return "" if self.target is not None else "no session is selected"

    def _not_in_list(self) -> str:
        if self.in_panes:
            return "the panes have the focus, not the list"
        return "" if self.list.rows else "there is no session yet"

    def _not_in_panes(self) -> str:
        return self._no_session() or ("" if self.in_panes else "the list has the focus, not the panes")

    def _no_plan(self) -> str:
        if why := self._no_session():
            return why
        row = self.host.snapshot.rows.get(self.wall.current_session)
        shown = self.wall.shows_plan
        return "" if shown or (row is not None and row.plan_total) else "the session of this pane has no plan"

    def _no_split(self, *, across: bool) -> str:
        return self._no_session() or self.wall.no_split(across=across)

    def _one_pane(self) -> str:
        if why := self._no_session():
            return why
        return "" if isinstance(self.wall.tiles, tiling.Split) else "there is only one pane"

    # -- moving and panes --------------------------------------------------------------------------

    def _other_part(self) -> None:
        (self.list if self.in_panes else self.wall).focus()

    def _open(self, tab: str = "") -> None:
        if row := self.target:
            self.host.open_session(row.sid, tab)

    def _pane_left(self) -> None:
        if not self.wall.move("left"):
            self.list.focus()

    def _zoom(self) -> None:
        self.wall.zoomed = not self.wall.zoomed
        self.sync_logs(None)

    def _toggle_raw(self) -> None:
        self.wall.raw = not self.wall.raw

    def _toggle_plan(self) -> None:
        self.wall.toggle_plan()
        self.sync_logs(None)
        self._look_at_plans()

    def _look_at_plans(self) -> None:
        panes = self.wall.visible_plans
        if self._plans is None:
            if not panes:
                return
            from app.screens.plan_panes import PlanPanes  # reads records, which the first paint does not wait for

            self._plans = PlanPanes()
        for look in self._plans.looks(panes, self.host.snapshot, self.host.feed):
            self.host.run_beside(look)

    def _pin(self) -> None:
        if self.list.selected:
            self.wall.show(self.list.selected)

    def _turn_page(self, pages: int) -> None:
        if (log := self.wall.current_log()) is not None:
            log.action_page(pages)

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

    # how wide the list is, by how wide the screen is: what a table of a wide one needs is no measure for a small one

    @property
    def _tier(self) -> str:
        steps = self.app.HORIZONTAL_BREAKPOINTS or [(0, "")]
        return max(step for step in steps if self.app.size.width >= step[0])[1]

    def _widen(self, width: int | None) -> None:
        if width is None or self.app.size.width < _TWO_COLUMNS:
            self.list.styles.clear_rule("width")
        else:
            self.list.styles.width = self._possible(width)

    def _possible(self, width: int) -> int:
        return max(_LEAST_LIST, min(width, self.app.size.width - tiling.MIN_WIDTH))

    def on_session_list_dragged(self, message: SessionList.Dragged) -> None:
        self._widen(message.width)
        if message.let_go:
            self._widths[self._tier] = self._possible(message.width)
            self._keep(LIST_FILE, json.dumps(self._widths))

    def _load_widths(self) -> None:
        try:
            kept = json.loads((self.host.folders.state / LIST_FILE).read_text("utf-8"))
            self._widths = {str(tier): int(width) for tier, width in kept.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            self._widths = {}  # nobody dragged it, or what is there is nothing of ours

    def on_pane_wall_changed(self) -> None:
        text = json.dumps(tiling.to_data(self.wall.tiles))
        if text == self._saved_layout:
            return
        self._saved_layout = text
        self.show_keys()
        self._keep(LAYOUT_FILE, text)

    def _keep(self, name: str, text: str) -> None:
        path = self.host.folders.state / name
        part = path.with_name(f".{name}.{os.getpid()}")
        try:
            with durable.swapping(path, part, sync=False) as fd:
                durable.write_all(fd, text.encode())
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
