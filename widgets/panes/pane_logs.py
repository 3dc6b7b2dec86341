"""What stands in each pane of the wall: the widget that shows its session's transcript, raw events or plan."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, TypeAlias, cast
from weakref import WeakKeyDictionary

from textual import events
from textual.geometry import Size
from textual.widget import Widget

if TYPE_CHECKING:
    from widgets.log.event_log import EventLog
    from widgets.log.log_rows import LogSource
    from widgets.log.transcript import Transcript
    from widgets.panes.plan_pane import PlanPane

    PaneLog: TypeAlias = EventLog | Transcript | PlanPane


class PaneLogs:
    """One widget a pane, by its leaf in the tree of splits; sessions are given as ids, logs as what opens them."""

    def __init__(self, log_of: Callable[[str], LogSource]) -> None:
        self._log_of = log_of
        self._logs: dict[int, PaneLog] = {}
        self._told: WeakKeyDictionary[Widget, Size] = WeakKeyDictionary()
        """The size that each log was last told."""
        self._shown: dict[int, str] = {}
        self._plans: set[int] = set()
        """Panes that show the plan of their session, not what it says and does."""

    # -- what is there -----------------------------------------------------------------------------

    def get(self, leaf: int) -> PaneLog | None:
        """The widget of a pane."""
        return self._logs.get(leaf)

    def leaf_of(self, child: Widget) -> int | None:
        """The pane that a widget belongs to."""
        return next((leaf for leaf, log in self._logs.items() if log is child), None)

    def session_in(self, leaf: int) -> str:
        """The session that the pane's widget shows; empty when none."""
        return self._shown.get(leaf, "")

    @property
    def sessions(self) -> set[str]:
        """All that are shown."""
        return set(self._shown.values())

    def within(self, places: Collection[int]) -> list[tuple[str, PaneLog]]:
        """(session, widget) of every one of these panes that shows a session."""
        return [(sid, log) for leaf, log in self._logs.items() if (sid := self.session_in(leaf)) and leaf in places]

    def plans_within(self, places: Collection[int]) -> list[tuple[str, PlanPane]]:
        """The same of those that show a plan."""
        shown = ((self.session_in(leaf), self._logs.get(leaf)) for leaf in self._plans if leaf in places)
        return [(sid, cast("PlanPane", log)) for sid, log in shown if sid and log is not None]

    def shows_plan(self, leaf: int) -> bool:
        """The pane shows a plan."""
        return leaf in self._plans

    # -- what becomes of them ----------------------------------------------------------------------

    def clear(self) -> None:
        """Take all away, for others to come."""
        for leaf in list(self._logs):
            self._drop(leaf)

    def toggle_plan(self, leaf: int) -> None:
        """Show the plan in the pane, or what it showed before."""
        self._plans ^= {leaf}
        self._drop(leaf)

    def _drop(self, leaf: int) -> None:
        if (log := self._logs.pop(leaf, None)) is not None:
            log.remove()
        self._shown.pop(leaf, None)

    def assign(self, wall: Widget, wanted: dict[int, str], *, raw: bool) -> list[int]:
        """Give every pane its widget and every widget its session's log; the panes that show another one now."""
        for gone in self._logs.keys() - wanted.keys():
            self._drop(gone)
            self._plans.discard(gone)
        changed = []
        for leaf, sid in sorted(wanted.items()):
            log = self._logs.get(leaf)
            if log is None:
                log = self._made(leaf, raw=raw)
                self._logs[leaf] = log
                log.can_focus = False
                wall.mount(log)
            if self._shown.get(leaf) != sid:
                self._shown[leaf] = sid
                log.visible = bool(sid)
                log.set_log(self._log_of(sid) if sid else None)
                changed.append(leaf)
        return changed

    def _made(self, leaf: int, *, raw: bool) -> PaneLog:
        if leaf in self._plans:
            from widgets.panes.plan_pane import PlanPane

            return PlanPane()
        if raw:
            from widgets.log.event_log import EventLog

            return EventLog(compact=True)
        from widgets.log.transcript import Transcript

        return Transcript(compact=True)

    def laid_out(self) -> None:
        """Tell each widget its size. Textual says nothing to one that was arranged for an update between its mount and
        the next layout, and it would stay empty until its session goes on.
        """
        for log in self._logs.values():
            if self._told.get(log) != log.size:
                self._told[log] = log.size
                log.post_message(events.Resize(log.size, log.virtual_size))
