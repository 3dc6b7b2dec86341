"""The fleet: every session in one table, sorted, filtered, grouped and marked, and what is done to many at once."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Set
from dataclasses import dataclass, field, replace
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Input

from app.client.snapshot import Dirty, Snapshot
from app.framework.bulk import Act, reach
from app.framework.handlers import Handler, Handlers, bindings, in_list
from app.screens import bulk
from app.screens.base import WatchScreen
from harness.domain.state_span import Timeline
from harness.domain.text import formatting
from harness.protocol.client import SupervisorError, Unreachable
from harness.views.session_views import SessionRow
from widgets.base.help_bar import HelpBar, KeyEntry
from widgets.fleet import fleet_columns, timeline
from widgets.fleet.fleet_bar import Banner, FleetBar
from widgets.fleet.fleet_filter import FilterError, parse
from widgets.fleet.fleet_order import View
from widgets.fleet.fleet_table import FleetTable
from widgets.fleet.view_line import Shown, ViewLine

_OF_MARKED = frozenset({"table.stop", "table.pause", "table.resume", "table.archive", "table.raise"})
_FOLLOW_S = 5
"""Seconds between two looks at what the sessions of a timeline did meanwhile."""


@dataclass(frozen=True, slots=True)
class Left:
    """How a person left the table, for when they come back. ``text`` is the filter as it was typed, ``span`` the
    seconds that they chose for the timeline.
    """

    view: View = field(default_factory=View)
    text: str = ""
    span: int = 0
    marked: Set[str] = frozenset()
    selected: str = ""


class FleetScreen(WatchScreen):
    """The table, what it shows of the fleet above it, the totals below."""

    CSS_PATH = "fleet.tcss"
    SCOPES: ClassVar[tuple[str, ...]] = ("fleet",)
    BINDINGS: ClassVar[list[BindingType]] = bindings("fleet")
    AUTO_FOCUS: ClassVar[str | None] = "FleetTable"
    LEAVES_FIRST: ClassVar[str] = "table.unfilter"

    def __init__(self, left: Left) -> None:
        super().__init__()
        self.table = FleetTable()
        self.table.restore(left.view, left.marked, left.selected)
        self._text = left.text
        self._wrong = ""
        self._span = left.span
        """The seconds that the person chose for the timeline; 0 = what holds the whole fleet."""
        self._told: set[str] = set()
        """Sessions that were asked about what they did, in these seconds."""
        self._asking = False

    def compose(self) -> ComposeResult:
        yield Banner()
        yield ViewLine()
        yield Input(self._text, placeholder='state:waiting repo:shop spent:>1 -is:ended "two words"', id="filter")
        yield self.table
        yield FleetBar()
        yield HelpBar()

    @property
    def left(self) -> Left:
        """How it stands, also when it is not shown any more."""
        return Left(self.table.view, self._text, self._span, self.table.marked, self.table.selected)

    @property
    def _field(self) -> Input:
        return self.query_one("#filter", Input)

    # -- what is shown -----------------------------------------------------------------------------

    def sync(self, snapshot: Snapshot, dirty: Dirty) -> bool:
        if dirty & Dirty.ROWS:
            self.table.set_rows(snapshot.rows.values())
        if dirty & (Dirty.APPROVALS | Dirty.ROWS):
            waiting = [item.ts for item in snapshot.needs() if item.deferred is None]
            self.query_one(FleetBar).set_oldest(min(waiting, default=""))
        if dirty & (Dirty.FLEET | Dirty.LINK):
            self.query_one(FleetBar).set_fleet(snapshot.fleet, live=snapshot.live)
        if dirty & Dirty.LINK:
            self.show_link(snapshot)
        return False

    def clock(self, now: float) -> None:
        self.table.tick(now)
        if int(now) % _FOLLOW_S == 0:
            self._told.clear()
        self._follow()
        self.query_one(FleetBar).tick(now)

    def on_fleet_table_changed(self) -> None:
        self._say()
        self._follow()
        self.show_keys()

    def _say(self) -> None:
        table = self.table
        shown = table.shown
        self.query_one(ViewLine).say(
            Shown(
                table.view,
                self._text,
                self._wrong,
                len(shown),
                len(self.host.snapshot.rows),
                len(table.marked),
                len(table.marked - set(shown)),
            )
        )

    # -- actions -----------------------------------------------------------------------------------

    def handlers(self) -> Handlers:
        return {
            **in_list(lambda: self.table, self._nothing_shown),
            "table.page_up": Handler(lambda: self.table.page(-1), self._nothing_shown),
            "table.page_down": Handler(lambda: self.table.page(1), self._nothing_shown),
            "session.open": Handler(self._open, self._nothing_shown),
            "session.why": Handler(lambda: self._open("why"), self._nothing_shown),
            "table.filter": Handler(self._edit, self._no_session),
            "table.unfilter": Handler(self._unfilter, self._no_filter),
            "table.sort_left": Handler(lambda: self._sort_beside(-1), self._no_session),
            "table.sort_right": Handler(lambda: self._sort_beside(1), self._no_session),
            "table.turn": Handler(lambda: self._sort(self.table.view.sort), self._no_session),
            "table.group": Handler(lambda: self.table.set_view(self.table.view.regrouped()), self._no_session),
            "table.timeline": Handler(self._timeline, self._no_session),
            "table.longer": Handler(lambda: self._zoom(1), self._no_timeline),
            "table.shorter": Handler(lambda: self._zoom(-1), self._no_timeline),
            "table.mark": Handler(lambda: self.table.mark(), self._nothing_shown),
            "table.mark_all": Handler(lambda: self.table.mark_all(), self._nothing_shown),
            "table.stop": self._of_many(lambda: bulk.STOP),
            "table.pause": self._of_many(lambda: bulk.PAUSE),
            "table.resume": self._of_many(lambda: bulk.RESUME),
            "table.archive": self._of_many(lambda: bulk.ARCHIVE),
            "table.raise": self._of_many(lambda: bulk.raising(self.host.snapshot.approvals)),
        }

    def help_entries(self) -> list[KeyEntry]:
        """Once sessions are marked, what can be done to them comes first, with how many it reaches."""
        entries = super().help_entries()
        if not self.table.marked:
            return entries
        return sorted(entries, key=lambda entry: bool(entry.why) or entry.action not in _OF_MARKED)

    def _no_session(self) -> str:
        return "" if self.host.snapshot.rows else "there is no session yet"

    def _nothing_shown(self) -> str:
        if why := self._no_session():
            return why
        return "" if self.table.shown else "no session fits the filter"

    def _no_filter(self) -> str:
        return "" if self._text or self._field.display else "nothing is filtered"

    def _open(self, tab: str = "") -> None:
        if self.table.selected:
            self.host.open_session(self.table.selected, tab)

    def on_fleet_table_opened(self, message: FleetTable.Opened) -> None:
        self.host.open_session(message.sid)

    # -- the filter --------------------------------------------------------------------------------

    def _edit(self) -> None:
        self._field.display = True
        self._field.focus()

    def _unfilter(self) -> None:
        self._field.value = ""
        self._take("")
        self._leave_field()

    def _leave_field(self) -> None:
        self._field.display = False
        self.table.focus()
        self.show_keys()

    def on_input_changed(self, message: Input.Changed) -> None:
        self._take(message.value)

    def on_input_submitted(self) -> None:
        if not self._wrong:
            self._leave_field()

    def _take(self, text: str) -> None:
        """Filter by what is typed; what cannot be understood is said, and the table stays as it was."""
        self._text = text.strip()
        try:
            wanted = parse(self._text)
        except FilterError as exc:
            self._wrong = str(exc)
            self._say()
            return
        self._wrong = ""
        if wanted == self.table.view.filter:
            self._say()
        else:
            self.table.set_view(replace(self.table.view, filter=wanted))

    # -- the order ---------------------------------------------------------------------------------

    def _sort(self, column: str) -> None:
        self.table.set_view(self.table.view.sorted_by(column))

    def _sort_beside(self, step: int) -> None:
        columns = fleet_columns.sortable(self.table.size.width)
        here = self.table.view.sort
        at = columns.index(here) + step if here in columns else 0
        self._sort(columns[at % len(columns)])

    def on_fleet_table_sorted(self, message: FleetTable.Sorted) -> None:
        self._sort(message.column)

    # -- the timeline ------------------------------------------------------------------------------

    def _no_timeline(self) -> str:
        return "" if self.table.view.span else "this is for the timeline"

    def _timeline(self) -> None:
        span = 0 if self.table.view.span else self._span or self._whole()
        self.table.set_view(replace(self.table.view, span=span))

    def _whole(self) -> int:
        """The span that shows the fleet since its first session."""
        now = time.time()
        begun = (formatting.parse_ts(row.created) for row in self.host.snapshot.rows.values())
        return timeline.fitting(now - min((since for since in begun if since is not None), default=now))

    def _zoom(self, step: int) -> None:
        at = timeline.SPANS.index(self.table.view.span) + step
        self._span = timeline.SPANS[max(0, min(len(timeline.SPANS) - 1, at))]
        self.table.set_view(replace(self.table.view, span=self._span))

    def _follow(self) -> None:
        """Ask what those in sight did when, each once in a while."""
        if not self.table.view.span or self._asking:
            return
        late = [row for row in self.table.in_sight if row.sid not in self._told]
        if late:
            self._asking = True
            self.host.run_beside(self._ask_courses(late))

    async def _ask_courses(self, rows: list[SessionRow]) -> None:
        try:
            for row in rows:
                self._told.add(row.sid)
                with contextlib.suppress(SupervisorError):  # one log that cannot be read leaves the others theirs
                    told = await self.host.feed.reply(Timeline, "timeline", sid=row.sid)
                    if self.stands:
                        self.table.set_course(row.sid, told.stretches)
        except Unreachable as exc:
            self.host.tell(f"no timeline: {exc}", bad=True)
        finally:
            self._asking = False

    # -- many at once ------------------------------------------------------------------------------

    @property
    def _meant(self) -> list[SessionRow]:
        """The marked sessions, else the selected one, in the order of the table; then those that it does not show."""
        rows = self.host.snapshot.rows
        table = self.table
        marked = table.marked
        sids = [sid for sid in [*table.shown, *rows] if sid in marked] or [table.selected]
        return [rows[sid] for sid in dict.fromkeys(sids) if sid in rows]

    def _of_many(self, act_of: Callable[[], Act]) -> Handler:
        def why_not() -> str:
            found = reach(act_of(), self._meant)
            if found.targets:
                return ""
            if not found.spared:
                return "no session is selected"
            first = found.spared[0][1]
            marked = len(found.spared)
            return first if marked == 1 else f"none of the {marked} marked can: {first}"

        def label() -> str:
            act = act_of()
            reached = len(reach(act, self._meant).targets)
            return f"{act.yes} {reached}" if self.table.marked and reached else ""

        return Handler(lambda: self._ask(act_of()), why_not, label)

    def _ask(self, act: Act) -> None:
        found = reach(act, self._meant)
        more = act.id == bulk.RAISE
        hidden = frozenset(row.sid for row in found.targets) - set(self.table.shown)

        def answered(value: int | bool | None) -> None:
            if value:
                ask = bulk.asking(self.host, act, int(value))
                self.host.run_beside(bulk.carry_out(self.host, act, found.targets, ask))

        self.app.push_screen(bulk.BulkDialog(act, found, hidden, amount=more), answered)
