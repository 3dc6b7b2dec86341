"""One session: its transcript, log, plan and progress files, diff, cost and the evidence of its state."""

from __future__ import annotations

import asyncio
from collections.abc import Set
from functools import partial
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical
from textual.widget import Widget
from textual.widgets import ContentSwitcher

from app.client import export_request
from app.client.snapshot import Dirty, Snapshot
from app.framework.handlers import Handler, Handlers, bindings
from app.screens.plan_reading import PlanReading
from app.screens.session_commands import SessionCommands
from app.terminal import clipboard
from app.terminal.clipboard import Selected
from harness.protocol.client import SupervisorError, Unreachable
from harness.reports.describe import describe, detail
from harness.views.cost_views import Costs
from harness.views.replies import Compared
from harness.views.session_views import SessionRow
from widgets.base.fact_list import FactList
from widgets.base.help_bar import HelpBar
from widgets.base.tab_line import TabLine
from widgets.diff.diff_view import DiffView
from widgets.fleet.budget_bar import BudgetBar
from widgets.fleet.fleet_bar import Banner
from widgets.log.event_log import EventLog
from widgets.log.transcript import Transcript
from widgets.plan.plan_view import PlanView
from widgets.session.context_bar import ContextBar
from widgets.session.session_facts import advice, cost_facts, evidence
from widgets.session.session_line import SessionLine

TABS = (
    ("transcript", "Transcript"),
    ("log", "Log"),
    ("plan", "Plan & progress"),
    ("diff", "Diff"),
    ("cost", "Cost"),
    ("why", "Why"),
)


class SessionScreen(SessionCommands):
    """Everything about one session, in tabs."""

    CSS_PATH = "session.tcss"
    SCOPES: ClassVar[tuple[str, ...]] = ("session",)
    BINDINGS: ClassVar[list[BindingType]] = bindings("session")
    LEAVES_FIRST: ClassVar[str] = "log.unfilter"

    def __init__(self, sid: str, tab: str = "") -> None:
        super().__init__()
        self.sid = sid
        self._tab = tab or "transcript"
        self._seq = -1
        self._searched = False
        self._exporting = False
        self._plan = PlanReading()

    def compose(self) -> ComposeResult:
        yield Banner()
        yield SessionLine()
        yield TabLine(TABS)
        yield ContextBar(dom_id="context")
        with ContentSwitcher(initial=self._tab):
            yield Transcript(id="transcript")
            yield EventLog(id="log")
            yield PlanView(dom_id="plan")
            yield DiffView(id="diff")
            with Vertical(id="cost"):
                yield BudgetBar("session", dom_id="own")
                yield BudgetBar("today  ", dom_id="day")
                yield ContextBar(dom_id="context-below")
                yield FactList(dom_id="costs")
            yield FactList(dom_id="why")
        yield HelpBar()

    def on_mount(self) -> None:
        log = self.host.log_of(self.sid)
        self.log_view.set_log(log)
        self.transcript.set_log(log)
        super().on_mount()
        self._choose(self._tab)

    @property
    def log_view(self) -> EventLog:
        """The log."""
        return self.query_one(EventLog)

    @property
    def transcript(self) -> Transcript:
        """What it said and did."""
        return self.query_one(Transcript)

    @property
    def target(self) -> SessionRow | None:
        return self.host.snapshot.rows.get(self.sid)

    # -- what is shown -----------------------------------------------------------------------------

    def sync(self, snapshot: Snapshot, dirty: Dirty) -> bool:
        more = False
        row = snapshot.rows.get(self.sid)
        if dirty & Dirty.ROWS:
            self.query_one(SessionLine).set_row(row, self._advice(row) if row is not None else ())
            if row is not None and row.seq != self._seq:
                self._seq = row.seq
                more = self.sync_logs(None)
            if row is not None:
                for bar in self.query(ContextBar):
                    bar.set_row(row)
            self._facts(row, snapshot)
            self.show_keys()
        elif dirty == Dirty.NOTHING:
            more = self.sync_logs(None)
        if dirty & Dirty.LINK:
            self.show_link(snapshot)
        return more

    def _filter(self) -> None:
        self.log_view.cycle_filter()
        self.host.wake()

    def sync_logs(self, sids: Set[str] | None) -> bool:
        if self._tab == "transcript":
            return self.transcript.sync()
        return self.log_view.sync() if self._on_log else False

    def clock(self, now: float) -> None:
        if self._tab == "transcript":
            self.transcript.tick()
        elif self._tab == "plan":
            self.host.run_beside(self._read_plan())
            self.query_one(PlanView).refresh()
        elif self._tab in ("why", "cost"):
            self._facts(self.target, self.host.snapshot)

    def _advice(self, row: SessionRow) -> list[str]:
        return advice(row, self.host.keys.shown(row.action) if row.action else "")

    def _facts(self, row: SessionRow | None, snapshot: Snapshot) -> None:
        if row is None:
            return
        if self._tab == "why":
            self.query_one("#why", FactList).set_facts(evidence(row))
        elif self._tab == "cost":
            self.query_one("#own", BudgetBar).set_money(
                row.spent_nano, row.reserved_nano, row.cap_nano, row.unknown_nano
            )
            self.query_one("#day", BudgetBar).set_today(snapshot.fleet)

    async def _read_plan(self) -> None:
        """Look at the plan and its files, and show what changed."""
        row = self.target
        files = await self._plan.look(row, self.host.feed) if row is not None else None
        if files is not None and self.stands:
            self.query_one(PlanView).set_files(files)

    async def _read_diff(self) -> None:
        try:
            found = await self.host.feed.reply(Compared, "diff", sid=self.sid)
        except (SupervisorError, Unreachable) as exc:
            self.host.tell(f"no diff: {exc}", bad=True)
            return
        if self.stands:
            self.query_one(DiffView).set_diff(found.patch, found.files)

    async def _read_costs(self) -> None:
        try:
            costs = await self.host.feed.reply(Costs, "costs")
        except (SupervisorError, Unreachable) as exc:
            self.host.tell(f"no costs: {exc}", bad=True)
            return
        own = next((paid for paid in costs.sessions if paid.sid == self.sid), None)
        if self.stands and (row := self.target) is not None:
            self.query_one("#costs", FactList).set_facts(cost_facts(row, own))

    # -- tabs --------------------------------------------------------------------------------------

    def on_tab_line_chosen(self, message: TabLine.Chosen) -> None:
        self._choose(message.tab)

    def _choose(self, tab: str) -> None:
        self._tab = tab
        self.query_one(TabLine).choose(tab)
        switcher = self.query_one(ContentSwitcher)
        switcher.current = tab
        self._body().focus()
        self._facts(self.target, self.host.snapshot)
        if tab in ("transcript", "log"):
            self.sync_logs(None)
        elif tab == "plan":
            self.host.run_beside(self._read_plan())
        elif tab == "diff":
            self.host.run_beside(self._read_diff())
        elif tab == "cost":
            self.host.run_beside(self._read_costs())
        self.show_keys()

    def _step(self, step: int) -> None:
        names = [name for name, _ in TABS]
        self._choose(names[(names.index(self._tab) + step) % len(names)])

    def _reload(self) -> None:
        self._plan.forget()
        self._choose(self._tab)

    # -- actions -----------------------------------------------------------------------------------

    def handlers(self) -> Handlers:
        return {
            **super().handlers(),
            "tab.next": Handler(lambda: self._step(1)),
            "tab.previous": Handler(lambda: self._step(-1)),
            "focus.next": Handler(lambda: self._step(1)),
            "focus.previous": Handler(lambda: self._step(-1)),
            "session.why": Handler(lambda: self._choose("why"), self._already_why),
            "session.export": Handler(self._export, self._not_exporting),
            "session.reload": Handler(self._reload, self._not_read_once),
            "view.raw": Handler(self._toggle_raw),
            "view.plan": Handler(lambda: self._choose("plan"), self._already_plan),
            "log.search": Handler(self._search, self._not_reading),
            "log.filter": Handler(self._filter, self._not_on_log),
            "log.unfilter": Handler(lambda: self.log_view.set_filter(None), self._not_filtered),
            "log.record": Handler(self._open_row, self._not_reading),
            "log.next": Handler(lambda: self.log_view.next_match(forward=True), self._not_searched),
            "log.previous": Handler(lambda: self.log_view.next_match(forward=False), self._not_searched),
            "log.up": Handler(self._up),
            "log.down": Handler(self._down),
            "log.page_up": Handler(self._page_up),
            "log.page_down": Handler(self._page_down),
            "log.first": Handler(self._first),
            "log.last": Handler(self._last),
        }

    def selected_text(self) -> Selected | None:
        if self._tab == "transcript" and (chosen := self.transcript.cursor_row) is not None:
            below = [bit.text for bit in chosen.more]
            return Selected("the row", lambda: clipboard.lines([chosen.what, chosen.result, *below]), self.sid)
        if self._on_log and (record := self.log_view.record(self.log_view.cursor_seq or 0)) is not None:
            return Selected("the record", lambda: clipboard.lines([describe(record).summary, detail(record)]), self.sid)
        if self._tab == "diff":
            return Selected("the diff", self.query_one(DiffView).text, self.sid)
        return super().selected_text()

    def _not_exporting(self) -> str:
        if self._exporting:
            return "it is being exported"
        return "" if self.target else "this session is gone"

    def _export(self) -> None:
        row = self.target
        if row is not None:
            self._exporting = True
            file = Path.cwd() / export_request.file_name(row.name, row.sid)
            self.host.tell(f"{row.name}: exporting into {file} …")
            self.host.run_beside(self._exported(row, file))

    async def _exported(self, row: SessionRow, file: Path) -> None:
        try:
            folder = self.host.folders.session(row.sid).root
            made = await export_request.run(export_request.order(self.host.folders, folder, file))
        except export_request.NotExported as exc:
            self.host.tell(f"{row.name} is not exported: {exc}", bad=True)
        else:
            self.host.tell(export_request.told(made))
        finally:
            self._exporting = False

    @property
    def _on_log(self) -> bool:
        return self._tab == "log"

    def _already_why(self) -> str:
        return "this is the tab that says why" if self._tab == "why" else ""

    def _already_plan(self) -> str:
        return "this is the tab with the plan" if self._tab == "plan" else ""

    def _not_read_once(self) -> str:
        return "" if self._tab in ("diff", "cost", "plan") else "this tab is always up to date"

    def _not_on_log(self) -> str:
        return "" if self._on_log else f"this is for the raw events; {self.host.keys.shown('view.raw')} shows them"

    def _not_reading(self) -> str:
        return "" if self._reads else "this is for the transcript and the log; go to their tabs"

    def _not_filtered(self) -> str:
        return "" if self._on_log and self.log_view.groups is not None else "nothing is filtered"

    def _not_searched(self) -> str:
        if why := self._not_on_log():
            return why
        return "" if self._searched else "nothing was searched for yet"

    # -- the transcript and the log ----------------------------------------------------------------

    @property
    def _reads(self) -> bool:
        return self._tab in ("transcript", "log")

    def _toggle_raw(self) -> None:
        """From the transcript to the same place in the log, and back."""
        row = self.transcript.cursor_row
        if self._tab == "transcript" and row is not None and not self.transcript.follow:
            self.log_view.sync()
            self.log_view.go_to(row.seq)
        self._choose("transcript" if self._on_log else "log")

    def _open_row(self) -> None:
        self.log_view.action_open_record() if self._on_log else self.transcript.action_open_row()

    def _search(self) -> None:
        from app.screens.dialogs.dialogs import Ask, said

        def typed(text: str | None) -> None:
            if text:
                if not self._on_log:
                    self._choose("log")
                self._searched = True
                self.log_view.search(text)

        self.app.push_screen(
            Ask(
                "Search in",
                self._called,
                "Finds text in whole records, also where the line shows only a part.",
                said,
                submit="search",
            ),
            typed,
        )

    def on_event_log_searched(self, message: EventLog.Searched) -> None:
        if message.seq < 0:
            self.host.tell(f"not found: {message.text}")

    def on_event_log_opened(self, message: EventLog.Opened) -> None:
        from app.screens.dialogs.record import of_record

        record = self.log_view.record(message.seq)
        if record is not None:
            self.app.push_screen(of_record(record))

    def on_transcript_opened(self, message: Transcript.Opened) -> None:
        from app.client.remote_log import payload
        from app.screens.dialogs.record import ReadPayload, RowScreen
        from harness.eventlog import blobs

        title = message.row.what.split("\n")[0]
        read: ReadPayload = partial(payload, self.host.feed.call, self.sid)
        if (home := message.home) is not None:
            read = partial(asyncio.to_thread, partial(blobs.get, home / "blobs"))
        self.app.push_screen(RowScreen(title, message.records, read))

    @property
    def _called(self) -> str:
        row = self.target
        return row.name if row else self.sid

    def _body(self) -> Widget:
        """What scrolls on this tab."""
        return self.query_one({"cost": "#costs"}.get(self._tab, f"#{self._tab}"))

    def _text(self) -> Transcript | EventLog | None:
        """What is read by rows on this tab; None when it scrolls by lines."""
        if not self._reads:
            return None
        return self.log_view if self._on_log else self.transcript

    def _up(self) -> None:
        text = self._text()
        text.action_cursor(-1) if text is not None else self._body().scroll_up(animate=False)

    def _down(self) -> None:
        text = self._text()
        text.action_cursor(1) if text is not None else self._body().scroll_down(animate=False)

    def _page_up(self) -> None:
        text = self._text()
        text.action_page(-1) if text is not None else self._body().scroll_page_up(animate=False)

    def _page_down(self) -> None:
        text = self._text()
        text.action_page(1) if text is not None else self._body().scroll_page_down(animate=False)

    def _first(self) -> None:
        text = self._text()
        text.action_first() if text is not None else self._body().scroll_home(animate=False)

    def _last(self) -> None:
        text = self._text()
        text.action_last() if text is not None else self._body().scroll_end(animate=False)
