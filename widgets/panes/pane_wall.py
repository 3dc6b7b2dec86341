"""The wall of live panes: one widget draws all titles and borders, one widget per visible pane shows the transcript, or
the raw events.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING

from rich.style import Style
from textual import events
from textual.geometry import Offset, Region, Size, Spacing
from textual.layout import ArrangeResult, Layout, WidgetPlacement
from textual.message import Message
from textual.reactive import reactive
from textual.strip import Strip
from textual.widget import Widget

from harness.views.session_views import ERRORS, NEEDS_YOU, SessionRow
from widgets.base import cells
from widgets.base.cells import Line
from widgets.base.palette import palette
from widgets.panes import pane_frame, pane_title, tiling
from widgets.panes.pane_logs import PaneLogs
from widgets.panes.tiling import Direction, Leaf, Node, Rect

if TYPE_CHECKING:
    from textual.screen import Screen

    from widgets.log.log_rows import LogSource
    from widgets.panes.pane_logs import PaneLog
    from widgets.panes.plan_pane import PlanPane


class _Tiles(Layout):
    """Places each pane's log below its title line."""

    name = "tiles"

    def arrange(self, parent: Widget, children: list[Widget], size: Size, greedy: bool = True) -> ArrangeResult:
        assert isinstance(parent, PaneWall)
        places = parent.place(size)
        made: ArrangeResult = []
        for child in children:
            leaf = parent.leaf_of(child)
            area = places.get(leaf) if leaf is not None else None
            if area is not None and area.height > 1 and area.width > 0:
                region = Region(area.x, area.y + 1, area.width, area.height - 1)
                made.append(WidgetPlacement(region, Offset(0, 0), Spacing(), child))
        return made


class PaneWall(Widget, can_focus=True):
    """Panes in a tree of splits; the current one takes the scrolling keys.

    Sessions are given as rows, logs as what opens them.
    """

    DEFAULT_CSS = """
    PaneWall {
        background: $background;
    }
    """

    tiles: reactive[Node] = reactive[Node](Leaf(1))
    zoomed: reactive[bool] = reactive(False)
    raw: reactive[bool] = reactive(False)
    """The panes show every event, not the transcript."""

    class Changed(Message):
        """The layout changed and may be saved."""

    class Opened(Message):
        """A pane was opened by a double click."""

        def __init__(self, sid: str) -> None:
            super().__init__()
            self.sid = sid

    def __init__(self, log_of: Callable[[str], LogSource], *, dom_id: str | None = None) -> None:
        super().__init__(id=dom_id)
        self._tiling = _Tiles()
        self._logs = PaneLogs(log_of)
        self._painted = False
        self._rows: Mapping[str, SessionRow] = {}
        self.places: dict[int, Rect] = {1: Rect(0, 0, 0, 0)}
        """Where each pane that is on the screen stands, by its leaf."""
        self._selected = ""
        self._followed = ""
        self.current = 1
        self._dragged: tuple[int, ...] | None = None
        self.hint: tuple[tuple[str, str], ...] = ()

    @property
    def layout(self) -> Layout:
        return self._tiling

    # -- what is shown -----------------------------------------------------------------------------

    def set_rows(self, rows: Mapping[str, SessionRow]) -> None:
        """Take the newest rows: titles are redrawn, panes of vanished sessions get another one."""
        before = self._rows
        self._rows = rows
        if rows:
            self.tiles = self._filled(rows)
        self._assign()
        if bool(before) != bool(rows):
            self._relayout()
            return
        for leaf, area in self.places.items():
            sid = self.session_of(leaf)
            if before.get(sid) != rows.get(sid):
                self.refresh(Region(area.x, area.y, area.width, 1))

    def _filled(self, rows: Mapping[str, SessionRow]) -> Node:
        """The panes with sessions for those that have none, and for those whose session ended when another one goes
        on; what was pinned stays.
        """
        order = [sid for sid in ranked(rows.values()) if sid != self._selected]
        panes = list(tiling.leaves(self.tiles))
        shown = {leaf.sid for leaf in panes}
        waiting = sum(not rows[sid].ended and sid not in shown for sid in order)
        ended = [p.sid for p in panes if p.sid in rows and rows[p.sid].ended and not p.pinned]
        return tiling.fill(self.tiles, order, set(rows) - set(ended[:waiting]))

    def follow(self, sid: str) -> None:
        """Show this session in the panes that follow the selection."""
        self._selected = sid
        self._set(tiling.following(self.tiles))
        pinned = {leaf.sid for leaf in tiling.leaves(self.tiles) if leaf.id in self.places}
        # A session that another pane shows already is not shown twice: its pane's title is marked instead.
        if sid not in pinned or self._followed not in self._rows:
            self._followed = sid
        self._assign()
        for area in self.places.values():
            self.refresh(Region(area.x, area.y, area.width, 1))

    def session_of(self, leaf: int) -> str:
        """The session that a pane shows; empty when none."""
        for found in tiling.leaves(self.tiles):
            if found.id == leaf:
                sid = self._followed if found.sid == tiling.FOLLOW else found.sid
                return sid if sid in self._rows else ""
        return ""

    def _is_pinned(self, leaf: int) -> bool:
        return any(found.pinned for found in tiling.leaves(self.tiles) if found.id == leaf)

    @property
    def current_session(self) -> str:
        """The session of the current pane; empty when none."""
        return self.session_of(self.current)

    @property
    def visible_logs(self) -> list[tuple[str, PaneLog]]:
        """(session, log widget) of every pane on screen."""
        return self._logs.within(self.places)

    @property
    def visible_plans(self) -> list[tuple[str, PlanPane]]:
        """(session, widget) of every pane on screen that shows a plan."""
        return self._logs.plans_within(self.places)

    @property
    def shows_plan(self) -> bool:
        """The current pane shows a plan."""
        return self._logs.shows_plan(self.current)

    def current_log(self) -> PaneLog | None:
        """The log widget of the current pane."""
        return self._logs.get(self.current)

    def leaf_of(self, child: Widget) -> int | None:
        """The pane that a log widget belongs to."""
        return self._logs.leaf_of(child)

    def place(self, size: Size) -> dict[int, Rect]:
        """Compute (and keep) where the panes lie in an area of this size."""
        area = Rect(0, 0, size.width, size.height)
        self.places = {self.current: area} if self.zoomed else tiling.regions(self._folded(area), area)
        return self.places if self._rows else {}

    def _folded(self, area: Rect) -> Node:
        """The panes that can be read in this area; the current one is among them, or the one that follows the list."""
        kept = self.current
        if not self.has_focus and self.session_of(kept) != self._selected:
            kept = next((p.id for p in tiling.leaves(self.tiles) if self.session_of(p.id) == self._selected), kept)
        return tiling.fold(self.tiles, area, kept)

    # -- commands ----------------------------------------------------------------------------------

    def no_split(self, *, across: bool) -> str:
        """Why the current pane cannot be split, as a sentence; empty when it can."""
        if self.zoomed:
            return "give the zoomed pane back first"
        if len(self.places) >= tiling.MAX_TILES:
            return f"{tiling.MAX_TILES} panes are the most"
        area = self.places.get(self.current)
        return "" if area is not None and tiling.can_split(area, across=across) else "this pane is too small to split"

    def split(self, *, across: bool) -> bool:
        """Split the current pane; False when `no_split` has a reason."""
        if self.no_split(across=across):
            return False
        new = tiling.fresh_id(self.tiles)
        self._set(
            tiling.fill(
                tiling.split(self.tiles, self.current, across=across, sid=tiling.EMPTY),
                self._unshown(),
                set(self._rows),
            )
        )
        self.go_to(new)
        return True

    def close_pane(self) -> bool:
        """Close the current pane; False when it is the last."""
        if isinstance(self.tiles, Leaf):
            return False
        gone = self.current
        self.zoomed = False
        tree = tiling.following(tiling.close(self.tiles, gone))
        left = next(tiling.leaves(tree)).id
        if all(leaf.sid != tiling.FOLLOW for leaf in tiling.leaves(tree)):
            tree = tiling.assign(tree, left, tiling.FOLLOW)  # else what is selected could be seen nowhere
        self._set(tree)
        self.go_to(left)
        return True

    def show(self, sid: str) -> None:
        """Pin a session to the current pane; pinning what was pinned there lets it follow the selection again."""
        if self._is_pinned(self.current) and self.current_session == sid:
            self._followed = sid
            self._set(tiling.assign(self.tiles, self.current, tiling.FOLLOW))
            return
        before = {leaf.id: self.session_of(leaf.id) for leaf in tiling.leaves(self.tiles)}
        tree = tiling.pin(self.tiles, self.current, sid)
        follower = next((leaf.id for leaf in tiling.leaves(tree) if leaf.sid == tiling.FOLLOW), self.current)
        self._followed = next((other for other in (before[follower], *self._unshown()) if other != sid), "")
        self._set(tiling.fill(tree, self._unshown(), set(self._rows)))

    def move(self, direction: Direction) -> bool:
        """Make the neighbouring pane current; False at the edge of the wall."""
        if self.zoomed:
            return False
        other = tiling.neighbour(self.places, self.current, direction)
        if other is None:
            return False
        self.go_to(other)
        return True

    def grow(self, *, across: bool, delta: int) -> None:
        """Move the border of the current pane by thousandths of the wall."""
        self._set(tiling.resize(self.tiles, self.current, across=across, delta=delta))

    def even(self) -> None:
        """Give all panes the same room."""
        self._set(tiling.even(self.tiles))

    def go_to(self, leaf: int) -> None:
        """Make a pane current."""
        self.current = leaf
        if self.zoomed or leaf not in self.places:
            self._relayout()
        else:
            self.refresh()

    def arrange_by_default(self) -> None:
        """Lay out the panes for the number of sessions, as long as nobody arranged them; only ever adds panes."""
        tree = tiling.default(self.size.width, self.size.height, len(self._rows))
        if len(list(tiling.leaves(tree))) > len(list(tiling.leaves(self.tiles))):
            self.tiles = tiling.keep(tree, {leaf.id: leaf.sid for leaf in tiling.leaves(self.tiles)})
            self.set_rows(self._rows)

    def watch_raw(self) -> None:
        self._logs.clear()
        self._assign()

    def toggle_plan(self) -> None:
        """Show the plan in the current pane, or what it showed before."""
        self._logs.toggle_plan(self.current)
        self._assign()

    def tick(self) -> None:
        """Once a second: what runs moves on."""
        for _, log in self.visible_logs:
            log.tick()

    def _relayout(self) -> None:
        # The arrangement is cached by size and children; zooming and moving borders change neither.
        self._clear_arrangement_cache()
        self.refresh(layout=True)

    def watch_zoomed(self) -> None:
        self._relayout()

    def _unshown(self) -> list[str]:
        shown = self._logs.sessions
        return [sid for sid in self._rows if sid not in shown]

    def _set(self, tree: Node) -> None:
        if tree != self.tiles:
            self.tiles = tree
            self._assign()
            self.post_message(self.Changed())

    # -- panes and their logs ----------------------------------------------------------------------

    def watch_tiles(self) -> None:
        ids = {leaf.id for leaf in tiling.leaves(self.tiles)}
        if self.current not in ids:
            self.current = min(ids)
        if self.is_mounted:
            self._assign()
            self._relayout()

    def on_mount(self) -> None:
        self.screen.screen_layout_refresh_signal.subscribe(self, self._laid_out)
        # The logs are read in and mounted behind the first frame, which shows the sessions at once.
        self.call_after_refresh(self._begin)

    def _laid_out(self, _screen: Screen[object]) -> None:
        self._logs.laid_out()

    def _begin(self) -> None:
        self._painted = True
        self._assign()

    def _assign(self) -> None:
        """Give every pane its log widget and every log widget its session's log."""
        if not self._painted or not self.is_attached:
            return
        wanted = {leaf.id: self.session_of(leaf.id) for leaf in tiling.leaves(self.tiles)}
        for leaf in self._logs.assign(self, wanted, raw=self.raw):
            if area := self.places.get(leaf):
                self.refresh(Region(area.x, area.y, area.width, area.height))

    # -- drawing -----------------------------------------------------------------------------------

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """A border is taken hold of, unless panes are folded away: then none lies where the tree says."""
        at = event.screen_offset - self.content_region.offset
        area = Rect(0, 0, self.size.width, self.size.height)
        if not self.zoomed and self.places.keys() == {leaf.id for leaf in tiling.leaves(self.tiles)}:
            self._dragged = tiling.border_at(self.tiles, area, at.x, at.y)
            if self._dragged is not None:
                self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._dragged is not None:
            at = event.screen_offset - self.content_region.offset
            area = Rect(0, 0, self.size.width, self.size.height)
            self.tiles = tiling.drag(self.tiles, area, self._dragged, at.x, at.y)

    def on_mouse_up(self) -> None:
        if self._dragged is not None:
            self._dragged = None
            self.release_mouse()
            self.post_message(self.Changed())

    def on_click(self, event: events.Click) -> None:
        at = event.screen_offset - self.content_region.offset
        for leaf, area in self.places.items():
            if area.x <= at.x < area.x + area.width and area.y <= at.y < area.y + area.height:
                self.focus()
                self.go_to(leaf)
                if event.chain == 2 and (sid := self.session_of(leaf)):
                    self.post_message(self.Opened(sid))
                return

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        base = self.rich_style
        style = palette(self)
        if not self._rows:
            return pane_frame.hint(self.hint, y, self.size, base, style)
        line = Line(width)
        x = 0
        here = sorted((area, leaf) for leaf, area in self.places.items() if area.y <= y < area.y + area.height)
        for area, leaf in here:
            if area.x > x:
                line.left("│" * (area.x - x), style["border"])
            if y == area.y:
                for text, of_part in self._title(leaf, area.width):
                    line.left(text, of_part)
            elif not self._logs.session_in(leaf) and y == area.y + 2:
                line.left(cells.fit("  space shows the selected session here", area.width), style["quiet"])
            else:
                line.left(" " * area.width, base)
            x = area.x + area.width
        return line.strip(base)

    def _title(self, leaf: int, width: int) -> list[tuple[str, Style]]:
        row = self._rows.get(self.session_of(leaf))
        frame = pane_frame.Frame(
            width,
            chosen=leaf == self.current,
            focused=self.has_focus,
            selected=row is not None and row.sid == self._selected,
            held=(self.zoomed and pane_title.ZOOMED) or (self._is_pinned(leaf) and pane_title.PINNED) or "",
        )
        return pane_frame.title(row, frame, palette(self))


def ranked(rows: Iterable[SessionRow]) -> list[str]:
    """Which sessions deserve a pane, the first most: who needs somebody, what is wrong, what runs (the newest first),
    and last, newest first, what ended.
    """
    urgent = {NEEDS_YOU: 0, ERRORS: 1}
    newest = sorted(rows, key=lambda row: (row.created, row.sid), reverse=True)
    return [row.sid for row in sorted(newest, key=lambda row: (row.ended, urgent.get(row.group, 2)))]
