"""What is remembered and what wants to be, one line each: lessons that wait stand first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from rich.style import Style
from textual import events
from textual.geometry import Region, Size
from textual.message import Message
from textual.strip import Strip

from harness.domain.text import formatting
from harness.views.memory_views import LessonView, MemoryView
from widgets.base import cells
from widgets.base.cells import Line
from widgets.base.palette import palette
from widgets.base.selectable_lines import SelectingLines

Entry: TypeAlias = LessonView | MemoryView
Name: TypeAlias = tuple[str, str, str, str]


def name_of(entry: Entry) -> Name:
    """What tells one entry from every other, whatever becomes of it."""
    return (entry.lesson if isinstance(entry, LessonView) else "", entry.scope, entry.of, entry.key)


def whose(scope: str, of: str, names: Mapping[str, str]) -> str:
    """Whose memory it is, in a word; raw text. ``names`` are those of the sessions by id."""
    if scope == "session":
        return names.get(of, of)
    if scope == "user":
        return "you"
    return formatting.repository(of)


class MemoryList(SelectingLines):
    """The selection is pinned to an entry."""

    class Chosen(Message):
        """Another entry is selected, or the selected one has changed."""

    def __init__(self) -> None:
        super().__init__()
        self._entries: list[Entry] = []
        self._names: Mapping[str, str] = {}
        self._now = 0.0
        self._selected: Name | None = None

    def set_entries(self, entries: Sequence[Entry], names: Mapping[str, str], now: float) -> None:
        """Show these; the selection stays where it was, or where that stood."""
        at = self._at
        self._entries = list(entries)
        self._names = names
        self._now = now
        lessons = sum(isinstance(entry, LessonView) for entry in entries)
        wait = "waits" if lessons == 1 else "wait"
        waits = f"? {formatting.counted(lessons, 'lesson')} {wait} for you, " if lessons else ""
        self.border_title = f" Memory: {waits}{len(entries) - lessons} remembered "
        if all(name_of(entry) != self._selected for entry in entries):
            self._selected = name_of(entries[min(at, len(entries) - 1)]) if entries else None
        self.virtual_size = Size(self.scrollable_content_region.width, len(entries) + 1)
        self.refresh()
        self.post_message(self.Chosen())

    @property
    def selected(self) -> Entry | None:
        """The entry that keys act on."""
        return next((entry for entry in self._entries if name_of(entry) == self._selected), None)

    @property
    def _at(self) -> int:
        return next((at for at, entry in enumerate(self._entries) if name_of(entry) == self._selected), 0)

    def move(self, step: int) -> None:
        """Move the selection by so many lines."""
        if self._entries:
            self._choose(max(0, min(len(self._entries) - 1, self._at + step)))

    def _choose(self, at: int) -> None:
        self._selected = name_of(self._entries[at])
        self.scroll_to_region(Region(0, at if at == 0 else at + 1, 1, 1), animate=False, force=True)
        self.refresh()
        self.post_message(self.Chosen())

    def on_click(self, event: events.Click) -> None:
        inside = event.get_content_offset(self)
        at = inside.y + self.scroll_offset.y - 1 if inside is not None else -1
        if 0 <= at < len(self._entries):
            self._choose(at)

    def render_line(self, y: int) -> Strip:
        y += self.scroll_offset.y
        style = palette(self)
        width = self.scrollable_content_region.width
        base = self.rich_style
        line = Line(width)
        if y == 0:
            for text, cell in zip(("  ", "key", "whose", "by", "text"), self._columns(), strict=True):
                line.left(cells.fit(text, cell), style["title"])
            return line.strip(base)
        if y > len(self._entries):
            return Strip.blank(width, base)
        entry = self._entries[y - 1]
        if name_of(entry) == self._selected:
            base = base + style["chosen"]
        self._fill(line, entry, style)
        return line.strip(base)

    def _columns(self) -> tuple[int, ...]:
        width = self.scrollable_content_region.width
        by = 22 if width >= 100 else 0
        key = 22 if width >= 100 else 18
        whose_is = 16 if width >= 100 else 12
        return 2, key, whose_is, by, max(0, width - 2 - key - whose_is - by)

    def _fill(self, line: Line, entry: Entry, style: Mapping[str, Style]) -> None:
        _, key, whose_is, by, _ = self._columns()
        lesson = isinstance(entry, LessonView)
        said = _by(entry)
        line.left("? " if lesson else "· ", style["attention" if lesson else "quiet"])
        line.left(cells.fit(cells.safe(entry.key, key - 1), key), style["text"])
        place = whose(entry.scope, entry.of, self._names)
        line.left(cells.fit(cells.safe(place, whose_is - 1), whose_is), style["quiet"])
        line.left(cells.fit(cells.safe(said, by - 1), by) if by else "", style["quiet"])
        ts = entry.ts if isinstance(entry, LessonView) else entry.newest.ts
        line.right(f" {formatting.age(ts, self._now):>3} ", style["quiet"])  # a long text gives way to it
        line.left(cells.safe(_text(entry), line.room), style["text"])


def _by(entry: Entry) -> str:
    if isinstance(entry, MemoryView):
        return entry.newest.by
    sessions = len(entry.sightings)
    return formatting.counted(sessions, "session")


def _text(entry: Entry) -> str:
    if isinstance(entry, MemoryView):
        return entry.newest.text
    return "wants it forgotten" if entry.removes else entry.text
