"""One file of a patch with line numbers, a current line and marks of comments; in two halves where there is room."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from widgets.base import cells
from widgets.base.lines import ReadLines
from widgets.base.palette import palette
from widgets.diff.patch import patch_display
from widgets.diff.patch_files import PatchRow, beside

HALVES = 104
"""Cells from which on the two sides stand beside each other: what a screen of 140 leaves beside a list of files."""
_MAX_LINE = 4000
_MARK = "✎"
_AROUND = 6
"""Lines before and after the current one that are seen with it, where there is room."""
_STEP = 20
_ROLES = {"hunk": "second", "add": "good", "remove": "bad", "meta": "quiet"}


class PatchView(ReadLines, inherit_bindings=False):
    """The current line is a row of the file; in two halves it stands on the half that it belongs to."""

    class Moved(Message):
        """Another line became the current one."""

    def __init__(self) -> None:
        super().__init__()
        self._rows: Sequence[PatchRow] = ()
        self._lines: list[tuple[int, int]] = []
        self._line_of: dict[int, int] = {}
        self._marked: Collection[int] = ()
        self._halves = False
        self._digits = 1
        self._shift = 0
        self.at = 0

    def set_rows(self, rows: Sequence[PatchRow], marked: Collection[int], at: int) -> None:
        """Show these rows, those with a comment marked, and make one the current line."""
        self._shift = 0 if rows is not self._rows else self._shift
        self._rows = rows
        self._marked = marked
        self._digits = len(str(max((max(row.old, row.new) for row in rows), default=0)))
        self._lay_out()
        self.go(at)

    def go(self, at: int) -> None:
        """Make this row the current line, and have it seen."""
        self.at = max(0, min(len(self._rows) - 1, at))
        self._into_view()
        self.refresh()
        self.post_message(self.Moved())

    def page(self, step: int) -> None:
        """A page on or back."""
        line = self._line_of.get(self.at, 0) + step * max(1, self.scrollable_content_region.height - 2)
        left, right = self._lines[max(0, min(len(self._lines) - 1, line))]
        self.go(right if right >= 0 else left)

    def slide(self, step: int) -> None:
        """Show what is further right, or left, of lines that are longer than the screen."""
        longest = max((min(len(row.text), _MAX_LINE) for row in self._rows), default=0)
        self._shift = max(0, min(longest, self._shift + step * _STEP))
        self.refresh()

    def on_resize(self) -> None:
        self._lay_out()
        self._into_view()

    def _lay_out(self) -> None:
        self._halves = self.size.width >= HALVES
        self._lines = beside(self._rows) if self._halves else [(at, at) for at in range(len(self._rows))]
        self._line_of = {row: line for line, pair in enumerate(self._lines) for row in pair if row >= 0}
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._lines))
        self.refresh()

    def _into_view(self) -> None:
        around = min(_AROUND, self.size.height // 4)
        top = max(0, self._line_of.get(self.at, 0) - around)
        self.scroll_to_region(Region(0, top, 1, 2 * around + 1), animate=False, force=True)

    def on_click(self, event: events.Click) -> None:
        inside = event.get_content_offset(self)
        line = inside.y + self.scroll_offset.y if inside is not None else -1
        if inside is not None and 0 <= line < len(self._lines):
            left, right = self._lines[line]
            first, second = (left, right) if inside.x < self.size.width // 2 else (right, left)
            self.go(first if first >= 0 else second)

    def render_line(self, y: int) -> Strip:
        line = y + self.scroll_offset.y
        width = self.scrollable_content_region.width
        base = self.rich_style
        if line >= len(self._lines):
            return Strip.blank(width, base)
        left, right = self._lines[line]
        if not self._halves or (left == right and not self._rows[left].new):
            return self._part(left, width, base, both=not self._halves)
        half = (width - 1) // 2
        edge = Strip([Segment("│", base + palette(self)["border"])])
        return Strip.join(
            [
                self._part(left, half, base, both=False, old=True),
                edge,
                self._part(right, width - 1 - half, base, both=False, other=left == right),
            ]
        )

    def _part(self, at: int, width: int, base: Style, *, both: bool, old: bool = False, other: bool = False) -> Strip:
        """One row in so many cells: ``both`` shows both numbers, ``old`` the number of the old side; ``other`` has the
        marks stand on the left half alone.
        """
        if at < 0:
            return Strip.blank(width, base)
        style = palette(self)
        row = self._rows[at]
        if at == self.at:
            base = base + style["chosen"]
        own = row.old if old else row.new
        numbers = (row.old, row.new) if both else (own,)
        shown = " ".join(f"{number or '':>{self._digits}}" for number in numbers)
        mark = _MARK if at in self._marked and not other else " "
        head = [
            Segment("▌" if at == self.at and not other else " ", base + style["meter"]),
            Segment(mark, base + style["attention"]),
            Segment(f"{shown} ", base + style["quiet"]),
        ]
        text = patch_display(row.text[:_MAX_LINE])
        if len(row.text) > _MAX_LINE:
            text += f"⟨+{len(row.text) - _MAX_LINE} characters⟩"
        look = base + style[_ROLES.get(row.role, "text")]
        used = 3 + len(shown)
        body = cells.window(text, look, self._shift, max(0, width - used), base)
        return Strip.join([Strip(head), body]).crop_extend(0, width, base)
