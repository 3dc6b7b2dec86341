"""The list of sessions as one line-API widget: groups with counts, two lines a session, or one when space is short."""

from __future__ import annotations

import time
from collections.abc import Iterable

from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from harness.views.session_views import SessionRow
from widgets.base.lines import ScrolledLines
from widgets.base.palette import palette
from widgets.session.session_order import SessionItem, layout, ordered
from widgets.session.session_rows import Look, is_table, lasted, names_of


class SessionList(ScrolledLines):
    """Shows `SessionRow`s; the selection is pinned to a session id, so a re-sort never moves it to another session."""

    class Moved(Message):
        """The selection is now on another session."""

        def __init__(self, sid: str) -> None:
            super().__init__()
            self.sid = sid

    class Opened(Message):
        """The user opened the selected session."""

        def __init__(self, sid: str) -> None:
            super().__init__()
            self.sid = sid

    class Dragged(Message):
        """Its border was dragged, so that it would be so many cells wide; ``let_go`` when that is over."""

        def __init__(self, width: int, let_go: bool) -> None:
            super().__init__()
            self.width = width
            self.let_go = let_go

    def __init__(self, *, dom_id: str | None = None) -> None:
        super().__init__(id=dom_id)
        self._rows: list[SessionRow] = []
        self._items: list[SessionItem] = []
        self._ages: list[str] = []
        self._faces: list[tuple[object, ...]] = []
        self._selected = ""
        self._dense = False
        self._for_names = 0
        self._dragged = False
        self._was_dragged = False
        """What is let go of in the list is no click on the row below."""

    @property
    def selected(self) -> str:
        """Id of the selected session; empty when there is none."""
        return self._selected

    @property
    def rows(self) -> list[SessionRow]:
        """The sessions in the order shown."""
        return self._rows

    def set_rows(self, rows: Iterable[SessionRow]) -> None:
        """Take the newest rows; repaints only the lines that changed when the structure stayed the same."""
        before = self._items
        self._rows = ordered(rows)
        sids = [r.sid for r in self._rows]
        if self._selected not in sids:
            self._select(self._neighbour(before, set(sids)) or (sids[0] if sids else ""))
        self._relayout()

    def select(self, sid: str) -> bool:
        """Put the selection on a session; False when it is not in the list."""
        if all(r.sid != sid for r in self._rows):
            return False
        self._select(sid)
        self._relayout()
        self._reveal()
        return True

    def move(self, step: int) -> None:
        """Move the selection by so many sessions, staying inside the list."""
        sids = [r.sid for r in self._rows]
        if not sids:
            return
        at = sids.index(self._selected) if self._selected in sids else 0
        self.select(sids[max(0, min(len(sids) - 1, at + step))])

    def tick(self, now: float) -> None:
        """Repaint the lines whose shown age changed."""
        self._ages = self._age_column(now)
        self._repaint()

    def _select(self, sid: str) -> None:
        if sid != self._selected:
            self._selected = sid
            self.post_message(self.Moved(sid))

    def _neighbour(self, before: list[SessionItem], alive: set[str]) -> str:
        """The nearest session to the one that vanished."""
        shown = [item.row.sid for item in before if item.row is not None and item.part == 0]
        if self._selected not in shown:
            return ""
        at = shown.index(self._selected)
        return next((sid for sid in shown[at + 1 :] + shown[:at][::-1] if sid in alive), "")

    def _age_column(self, now: float) -> list[str]:
        return [lasted(item.row, now) if item.row is not None and item.part == 0 else "" for item in self._items]

    def _relayout(self) -> None:
        height = self.size.height
        groups = len({r.group for r in self._rows})
        names = names_of(self._rows)
        if names != self._for_names:
            self._for_names = names
            self.refresh()
        self._dense = is_table(self.scrollable_content_region.width) or (
            bool(height) and len(self._rows) * 2 + groups > height
        )
        self._items = layout(self._rows, self._selected, dense=self._dense)
        self._ages = self._age_column(time.time())
        size = Size(self.scrollable_content_region.width, len(self._items))
        if self.virtual_size != size:
            self.virtual_size = size
            self.refresh()
        self._repaint()

    def _repaint(self) -> None:
        """Have those lines painted again that look different now: under a flood rows change all the time, and few of
        them on the screen.
        """
        before = self._faces
        look = self._look()
        self._faces = [look.face(item, age) for item, age in zip(self._items, self._ages, strict=True)]
        if len(before) == len(self._faces):
            self._refresh_lines([y for y, (old, new) in enumerate(zip(before, self._faces, strict=True)) if old != new])
        else:
            self.refresh()

    def _look(self) -> Look:
        return Look(
            width=self.scrollable_content_region.width,
            names=self._for_names,
            dense=self._dense,
            selected=self._selected,
            focused=self.has_focus,
            styles=palette(self),
            base=self.rich_style,
        )

    def _refresh_lines(self, lines: list[int]) -> None:
        if len(lines) > 8:
            self.refresh()
            return
        top = self.scroll_offset.y
        width = self.scrollable_content_region.width
        visible = [Region(0, y - top, width, 1) for y in lines if 0 <= y - top < self.size.height]
        if visible:
            self.refresh(*visible)

    def _reveal(self) -> None:
        lines = [y for y, item in enumerate(self._items) if item.row is not None and item.row.sid == self._selected]
        if not lines:
            return
        top = lines[0] - 1 if lines[0] == 1 or self._items[lines[0] - 1].row is None else lines[0]
        self.scroll_to_region(Region(0, top, 1, lines[-1] - top + 1), animate=False, force=True)

    def on_resize(self) -> None:
        self._relayout()
        self._reveal()
        self.refresh()

    def on_focus(self) -> None:
        self.refresh()

    def on_blur(self) -> None:
        self.refresh()

    def on_mouse_down(self, event: events.MouseDown) -> None:
        self._was_dragged = False
        if self.styles.border_right[0] and event.screen_x == self.region.right - 1:
            self._dragged = True
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._dragged:
            self.post_message(self.Dragged(event.screen_x - self.region.x + 1, False))

    def on_mouse_up(self, event: events.MouseUp) -> None:
        if self._dragged:
            self._dragged = False
            self._was_dragged = True
            self.release_mouse()
            self.post_message(self.Dragged(event.screen_x - self.region.x + 1, True))

    def on_click(self, event: events.Click) -> None:
        y = event.y + self.scroll_offset.y
        if self._was_dragged:
            return
        if 0 <= y < len(self._items) and (row := self._items[y].row) is not None:
            if event.chain == 2:
                self.post_message(self.Opened(row.sid))
            else:
                self.select(row.sid)

    def render_line(self, y: int) -> Strip:
        y += self.scroll_offset.y
        look = self._look()
        if not 0 <= y < len(self._items):
            return Strip.blank(look.width, look.base)
        item = self._items[y]
        if item.row is None:
            return look.title(item, first=item is self._items[0])
        return look.session(item.row, item.part, self._ages[y] if y < len(self._ages) else "")
