"""A plan as it stands, and the plan and progress files of a worktree as they change on disk: checklists from JSON and
Markdown, other text as it is.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from rich.cells import cell_len
from rich.style import Style
from textual.geometry import Size
from textual.strip import Strip

from harness.domain.text import formatting
from harness.domain.text.display_safe import to_display
from widgets.base import cells
from widgets.base.cells import Line
from widgets.base.lines import ReadLines
from widgets.base.palette import palette

FILES = ("prd.json", "feature_list.json", "PLAN.md", "TODO.md", "progress.txt", "claude-progress.txt")
NOTES = "CHANGELOG.md"
"""Some agents keep their notes of the work in it; most projects have one of their own."""
MAX_BYTES = 256 * 1024
MAX_LINES = 2000
NOW = "now"
NEXT = "next"
_LOOKS = {
    "heading": (" ", "name"),
    "done": ("  ✓ ", "good"),
    "still": ("  = ", "good"),
    "open": ("  ○ ", "text"),
    NOW: ("  ▶ ", "heading"),
    NEXT: ("  ○ ", "name"),
    "failed": ("  ✗ ", "bad"),
    "blocked": ("  ■ ", "attention"),
    "call": (" ◆ ", "call"),
    "opened": (" ◇ ", "good"),
    "fact": ("      ", "quiet"),
    "text": ("  ", "quiet"),
    "note": (" ! ", "attention"),
}
"""By the kind of a line, its mark and its colour role."""
_BAR = 20
_BOX = re.compile(r"^(\s*)[-*+] \[([ xX])\] (.*)$")
_HEADING = re.compile(r"^(#{1,6})\s+(.*)$")


@dataclass(frozen=True, slots=True)
class PlanLine:
    """One line to show: ``kind`` is one of `_LOOKS`; a plan has one `NOW` or `NEXT` at most."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class PlanFile:
    """One file as read: its lines, how many items are done of how many, when it changed (seconds since the epoch).
    ``word``: what is said of those items.
    """

    name: str
    changed: float
    lines: tuple[PlanLine, ...]
    done: int = 0
    total: int = 0
    word: str = "done"


@dataclass(frozen=True, slots=True)
class Stamp:
    """What tells that a file changed: inode, size, modification time in ns."""

    inode: int
    size: int
    mtime_ns: int


def parse(name: str, text: str) -> tuple[tuple[PlanLine, ...], int, int]:
    """(lines, items done, items in all) of one file's text."""
    lines = _json(text) if name.endswith(".json") else _markdown(text)
    if len(lines) > MAX_LINES:
        lines = [*lines[:MAX_LINES], PlanLine("note", f"{len(lines) - MAX_LINES} more lines")]
    done = sum(1 for line in lines if line.kind == "done")
    return tuple(lines), done, done + sum(1 for line in lines if line.kind == "open")


def _markdown(text: str) -> list[PlanLine]:
    made: list[PlanLine] = []
    for line in text.splitlines():
        if box := _BOX.match(line):
            made.append(PlanLine("open" if box[2] == " " else "done", box[1] + box[3]))
        elif heading := _HEADING.match(line):
            made.append(PlanLine("heading", heading[2]))
        else:
            made.append(PlanLine("text", line))
    return made


def _json(text: str) -> list[PlanLine]:
    try:
        return _entries(json.loads(text.removeprefix("\ufeff"), parse_int=str))
    except (ValueError, RecursionError) as exc:
        return [
            PlanLine("note", f"not valid JSON now ({exc}); shown as text"),
            *(PlanLine("text", line) for line in text.splitlines()),
        ]


def _entries(data: object) -> list[PlanLine]:
    """What stands in a plan. Raises RecursionError for what is nested too deep to be shown."""
    items: object = data
    made: list[PlanLine] = []
    if isinstance(data, dict):
        made += [PlanLine("heading", str(data[key])) for key in ("project", "description") if data.get(key)]
        items = data.get("userStories", data.get("tasks"))
    if not isinstance(items, list):
        return [
            *made,
            *(PlanLine("text", line) for line in json.dumps(data, indent=2, ensure_ascii=False).splitlines()),
        ]
    for item in items:
        if isinstance(item, dict):
            title = " ".join(str(item[key]) for key in ("id", "title") if item.get(key)) or str(
                item.get("description", "")
            )
            made.append(PlanLine("done" if item.get("passes") is True else "open", title))
            if item.get("notes"):
                made.append(PlanLine("text", f"    {item['notes']}"))
        else:
            made.append(PlanLine("text", str(item)))
    return made


def notes(added: Iterable[str], changed: float) -> PlanFile:
    """What a session wrote into `NOTES`, of which the rest is the project's."""
    lines, done, total = parse(NOTES, "\n".join(added))
    return PlanFile(f"{NOTES}, what this session wrote", changed, lines, done, total)


def stamps(folder: Path) -> dict[str, Stamp]:
    """The plan files and the notes that are regular files, with what tells their changes (never follows a link)."""
    found: dict[str, Stamp] = {}
    for name in (*FILES, NOTES):
        try:
            st = os.lstat(folder / name)
        except OSError:
            continue
        if stat.S_ISREG(st.st_mode):
            found[name] = Stamp(st.st_ino, st.st_size, st.st_mtime_ns)
    return found


def read(folder: Path, names: Iterable[str]) -> list[PlanFile]:
    """Read these files (blocking; at most `MAX_BYTES` each).

    A link, a pipe or an unreadable file is named, never opened or guessed.
    """
    made: list[PlanFile] = []
    for name in names:
        try:
            fd = os.open(folder / name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError as exc:
            made.append(PlanFile(name, 0.0, (PlanLine("note", f"cannot be read: {exc.strerror}"),)))
            continue
        with os.fdopen(fd, "rb") as file:
            st = os.fstat(fd)
            if not stat.S_ISREG(st.st_mode):
                made.append(PlanFile(name, 0.0, (PlanLine("note", "is no regular file"),)))
                continue
            data = file.read(MAX_BYTES)
        lines, done, total = parse(name, data.decode("utf-8", "replace"))
        if st.st_size > MAX_BYTES:
            lines = (*lines, PlanLine("note", f"{st.st_size - MAX_BYTES:,} more bytes"))
        made.append(PlanFile(name, st.st_mtime, lines, done, total))
    return made


def age_text(seconds: float) -> str:
    """``changed just now``, ``changed 5m ago`` …"""
    return "changed just now" if seconds < 5 else f"changed {formatting.span(seconds)} ago"


class PlanView(ReadLines):
    """Shows `PlanFile`s one under another; titles carry the progress and the age of the last change, and the one of
    what stands on top stays. The line of what is worked on is kept in sight until a person scrolls.
    """

    def __init__(self, *, dom_id: str | None = None) -> None:
        super().__init__(id=dom_id)
        self._files: list[PlanFile] = []
        self._lines: list[tuple[str, str]] = []
        self._titles: dict[int, PlanFile] = {}
        self._left_at = 0
        self.empty = "no plan or progress file yet (" + ", ".join(FILES) + ")"

    @property
    def files(self) -> list[PlanFile]:
        """What is shown."""
        return self._files

    def set_files(self, files: list[PlanFile]) -> None:
        """Show these files; the scroll position stays where a person put it."""
        self._files = files
        self._wrap()

    def clear(self) -> None:
        """Show nothing, and begin at the top again."""
        self.set_files([])
        self.scroll_to(y=0, animate=False, force=True, immediate=True)
        self._left_at = 0

    def on_resize(self) -> None:
        self._wrap()

    def _wrap(self) -> None:
        width = max(8, self.scrollable_content_region.width - 1)
        self._lines = []
        self._titles = {}
        for file in self._files:
            if self._lines:
                self._lines.append(("text", ""))
            self._titles[len(self._lines)] = file
            self._lines.append(("file", ""))
            for line in file.lines:
                lead = _LOOKS[line.kind][0]
                shown = to_display(line.text.expandtabs(4).rstrip(), limit=4000)
                parts = cells.wrap(shown, max(4, width - cell_len(lead)))
                self._lines.append((line.kind, lead + parts[0]))
                self._lines += [(line.kind, " " * cell_len(lead) + part) for part in parts[1:]]
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._lines))
        self._keep_in_sight()
        self.refresh()

    def _keep_in_sight(self) -> None:
        """Go where the work is, unless somebody reads elsewhere."""
        at = next((y for y, (kind, _) in enumerate(self._lines) if kind in (NOW, NEXT)), -1)
        height = self.scrollable_content_region.height
        if at < 0 or not height or self.scroll_offset.y != self._left_at:
            return
        if not self._left_at < at < self._left_at + height - 1:
            self.scroll_to(y=max(0, at - height // 3), animate=False, force=True, immediate=True)
            self._left_at = self.scroll_offset.y

    def _style(self, role: str) -> Style:
        return palette(self)[role]

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        base = self.rich_style
        if not self._lines:
            return Line(width).left(f" {self.empty}" if y == 0 else "", self._style("quiet")).strip(base)
        at = y + self.scroll_offset.y
        if at >= len(self._lines):
            return Strip.blank(width, base)
        above = at if y else max((title for title in self._titles if title <= at), default=at)
        if (file := self._titles.get(above)) is not None:
            return self._title(file, width, base)
        kind, text = self._lines[at]
        return Line(width).left(text, self._style(_LOOKS[kind][1])).strip(base)

    def _title(self, file: PlanFile, width: int, base: Style) -> Strip:
        line = Line(width)
        if file.changed:
            line.right(f" {age_text(max(0.0, time.time() - file.changed))} ", self._style("quiet"))
        progress = f" {file.done}/{file.total} {file.word} " if file.total else ""
        name = cells.safe(file.name, max(8, line.room - len(progress) - _BAR - 4))
        line.left(f"─ {name} ", self._style("heading"))
        if file.total:
            full, rest = cells.bar(file.done, file.total, min(_BAR, max(0, line.room - len(progress) - 1)))
            role = "good" if file.done == file.total else "meter"
            line.left(full, self._style(role)).left(rest, self._style("quiet")).left(progress, self._style("good"))
        return line.strip(base, "─", self._style("quiet"))
