"""Looking back: what happened since the person looked, and what became of every request that is decided."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import ClassVar

import msgspec
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.widgets import Static

from app.client import last_seen
from app.client.snapshot import Dirty, Snapshot
from app.framework.handlers import Handler, Handlers, bindings, in_list
from app.presenters import look_back
from app.presenters.look_back import Entry
from app.presenters.since_last_seen import EMPTY, Told, first_look, unmoved
from app.screens.base import WatchScreen
from app.terminal import clipboard
from app.terminal.clipboard import Selected
from harness.domain.text.formatting import local, parse_ts
from harness.events.types import decode
from harness.protocol.client import SupervisorError, Unreachable
from harness.reports.briefing import Briefed
from harness.reports.receipts import Receipt, Receipts
from harness.views.replies import LogPiece
from harness.views.session_views import SessionRow
from widgets.base.entry_list import EntryList, Item
from widgets.base.help_bar import HelpBar
from widgets.base.tab_line import TabLine
from widgets.fleet.fleet_bar import Banner

BRIEF = "brief"
HISTORY = "history"
_TABS = ((BRIEF, "Since you looked"), (HISTORY, "Decided requests"))
_FIRST = timedelta(hours=24)
"""How far back the first briefing goes, and how much farther each press of the key for earlier."""
_EMPTY_OF = {BRIEF: "Reading what happened …", HISTORY: "Nobody was asked anything yet, or everything is still open."}
_FAILURES = (SupervisorError, Unreachable, msgspec.ValidationError, KeyError)
_ROLES = {look_back.HEAD: "heading", look_back.SESSION: "name", look_back.LINE: "text", look_back.REST: "quiet"}
_INDENT = {look_back.LINE: 1, look_back.REST: 1}


class BackScreen(WatchScreen):
    """Two lists of lines; each line opens its record."""

    DEFAULT_CSS = """
    BackScreen EntryList { height: 1fr; }
    BackScreen #nothing { height: 1; color: $text-muted; padding: 0 2; }
    """
    SCOPES: ClassVar[tuple[str, ...]] = ("back",)
    BINDINGS: ClassVar[list[BindingType]] = bindings("back")
    AUTO_FOCUS: ClassVar[str | None] = "EntryList"

    def __init__(self, tab: str = BRIEF) -> None:
        super().__init__()
        self._tab = tab
        self._since = ""
        self._read = False
        self._entries: dict[str, list[Entry]] = {}

    def compose(self) -> ComposeResult:
        yield Banner()
        yield TabLine(_TABS)
        yield Static("", id="nothing")
        yield EntryList()
        yield HelpBar()

    def on_mount(self) -> None:
        super().on_mount()
        self._show(self._tab)

    @property
    def list(self) -> EntryList:
        """The lines."""
        return self.query_one(EntryList)

    @property
    def entries(self) -> Sequence[Entry]:
        """The lines that are shown."""
        return self._entries.get(self._tab, [])

    @property
    def selected(self) -> Entry | None:
        """The line that keys act on; nothing before the screen stands."""
        shown = self.entries
        at = self.list.at if self.is_mounted and self.query(EntryList) else -1
        return shown[at] if 0 <= at < len(shown) else None

    def sync(self, snapshot: Snapshot, dirty: Dirty) -> bool:
        if dirty & Dirty.LINK:
            self.show_link(snapshot)
            if snapshot.live and not self._read:
                self._reload()
        return False

    # -- reading -----------------------------------------------------------------------------------

    def _reload(self) -> None:
        self._read = True
        self.host.run_beside(self._gather())

    async def _gather(self) -> None:
        """Read both lists, once for each session; what cannot be read says so and hides no other."""
        state = self.host.folders.state
        now = datetime.now(UTC)
        until = now.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        rows = list(self.host.snapshot.rows.values())
        self._since = self._since or last_seen.last(state) or first_look(rows, _earlier(until))
        every = [await self._told(row) for row in rows]
        made = look_back.briefing(every, self._since, now, self.host.snapshot.fleet.troubles)
        self._entries[BRIEF] = made
        if self._tab == BRIEF:
            last_seen.remember(state, until)  # it is shown now
        self._paint()
        found: list[tuple[str, str, Receipt]] = []
        unread: list[str] = []
        for row in rows:
            try:
                of = await self.host.feed.reply(Receipts, "receipts", sid=row.sid)
                found += [(row.sid, row.name, it) for it in of.receipts]
            except _FAILURES as exc:
                unread.append(f"{row.name}: {exc}")
        self._entries[HISTORY] = look_back.history(found, unread)
        self._paint()

    async def _told(self, row: SessionRow) -> Told:
        if unmoved(row, self._since):
            return Told(row, EMPTY)
        try:
            told = await self.host.feed.reply(Briefed, "brief", sid=row.sid, since=self._since)
            return Told(row, told.brief, told.upcoming)
        except _FAILURES as exc:
            return Told(row, EMPTY, problem=str(exc))

    def _show(self, tab: str) -> None:
        self._tab = tab
        self.query_one(TabLine).choose(tab)
        self.list.at = 0
        self.list.scroll_home(animate=False)
        self._paint()

    def _paint(self) -> None:
        if not self.stands:
            return
        shown = self._entries.get(self._tab)
        nothing = self.query_one("#nothing", Static)
        nothing.display = not shown
        nothing.update(_EMPTY_OF[self._tab] if shown is not None or self._tab == BRIEF else "Reading …")
        self.list.set_items([_item(entry) for entry in shown or ()])
        self.show_keys()

    # -- actions -----------------------------------------------------------------------------------

    def selected_text(self) -> Selected | None:
        entry = self.selected
        return None if entry is None else Selected("the line", lambda: clipboard.lines([entry.text]), entry.sid)

    def handlers(self) -> Handlers:
        return {
            **in_list(lambda: self.list, self._nothing),
            "back.open": Handler(self._open, self._opens_nothing),
            "back.session": Handler(self._open_session, self._opens_nothing),
            "back.tab": Handler(self._other),
            "back.earlier": Handler(self._go_earlier, self._not_brief),
        }

    def _nothing(self) -> str:
        return "" if self.entries else "nothing is told here yet"

    def _opens_nothing(self) -> str:
        chosen = self.selected
        return "" if chosen is not None and chosen.opens else "this line stands for no record"

    def _not_brief(self) -> str:
        return "" if self._tab == BRIEF else "this is everything that was decided"

    def _other(self) -> None:
        self._show(HISTORY if self._tab == BRIEF else BRIEF)

    def _go_earlier(self) -> None:
        self._since = _earlier(self._since)
        self._reload()

    def _open_session(self) -> None:
        chosen = self.selected
        if chosen is not None and chosen.sid:
            self.host.open_session(chosen.sid)

    def _open(self) -> None:
        from app.screens.dialogs.record import WholeScreen

        chosen = self.selected
        if chosen is None or not chosen.sid:
            return
        if chosen.receipt is not None:
            self.app.push_screen(WholeScreen(f"Request of {chosen.text}", look_back.facts(chosen.receipt)))
        elif chosen.seq < 0:
            self.host.open_session(chosen.sid)
        else:
            self.host.run_beside(self._open_record(chosen))

    async def _open_record(self, chosen: Entry) -> None:
        from app.screens.dialogs.record import of_record

        try:
            piece = await self.host.feed.reply(LogPiece, "read", sid=chosen.sid, from_seq=chosen.seq, most_bytes=1)
            record = decode(piece.lines[0].encode())
        except (*_FAILURES, IndexError, msgspec.DecodeError) as exc:
            self.host.tell(f"record {chosen.seq} cannot be read: {exc}", bad=True)
            return
        if self.app.screen is self:  # not above something that was opened meanwhile
            self.app.push_screen(of_record(record))

    def on_tab_line_chosen(self, message: TabLine.Chosen) -> None:
        self._show(message.tab)

    def on_entry_list_opened(self) -> None:
        if not self._opens_nothing():
            self._open()


def _earlier(ts: str) -> str:
    then = parse_ts(ts)
    at = datetime.fromtimestamp(then, UTC) if then is not None else datetime.now(UTC)
    return (at - _FIRST).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _item(entry: Entry) -> Item:
    return Item(
        entry.text,
        _ROLES[entry.role],
        entry.mark,
        local(entry.ts, "%m-%d %H:%M"),
        look_back.tone_of(entry),
        _INDENT.get(entry.role, 0) if entry.opens else 0,
    )
