"""A unified diff as one line-API widget: coloured by theme variables, any text shown safely, jumps from file to
file.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from typing import ClassVar

from rich.style import Style
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.strip import Strip

from harness.domain.text.display_safe import to_display
from harness.views.replies import FileDiff
from widgets.base import cells
from widgets.base.cells import Line
from widgets.diff.patch import code_display, patch_display, roles

_MAX_LINE = 4000


class DiffView(ScrollView, can_focus=True):
    """Shows a patch. ``}`` and ``{`` go to the next and the previous file."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"dv--file", "dv--meta", "dv--hunk", "dv--add", "dv--remove", "dv--context"}
    DEFAULT_CSS = """
    DiffView {
        background: $background;
        scrollbar-size-vertical: 1;
        scrollbar-size-horizontal: 1;
        &:focus { background-tint: $foreground 0%; }
        & > .dv--file { color: $primary; background: $panel; text-style: bold; }
        & > .dv--meta { color: $text-muted; }
        & > .dv--hunk { color: $accent; }
        & > .dv--add { color: $success; }
        & > .dv--remove { color: $error; }
        & > .dv--context { color: $foreground; }
    }
    DiffView:ansi {
        & > .dv--file { background: ansi_default; text-style: bold underline; }
        & > .dv--meta { color: ansi_default; text-style: dim; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("right_curly_bracket", "next_file", "Next file", show=False),
        Binding("left_curly_bracket", "previous_file", "Previous file", show=False),
    ]

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        self._lines: list[str] = []
        self._roles: list[str] = []
        self._starts: list[int] = []
        self._summaries = 0
        self._empty = "no changes"
        super().__init__(id=id)

    def set_diff(self, patch: str, files: Sequence[FileDiff] = (), *, empty: str = "no changes") -> None:
        """Show a unified diff, headed by one line per file of ``files`` when given."""
        head = [_summary(file) for file in files]
        body = patch.split("\n") if patch else []
        if body and not body[-1]:
            body.pop()
        lines = body
        kinds = roles(body)
        if head:
            lines = [*head, "", *body]
            kinds = ["context"] * len(head) + ["meta", *kinds]
        kept = lines == self._lines
        self._summaries = len(head)
        self._lines = lines
        self._roles = kinds
        self._empty = empty
        self._starts = [i for i, kind in enumerate(kinds) if kind == "file"] or [
            i for i, kind in enumerate(kinds) if kind == "hunk"
        ]
        if not kept:
            width = max((len(patch_display(line[:_MAX_LINE])) for line in lines), default=0)
            self.virtual_size = Size(width + 1, len(lines))
            self.scroll_to(0, min(self.scroll_y, max(0, len(lines) - 1)), animate=False)
        self.refresh()

    def text(self) -> str:
        """All of it as it is shown, whole lines."""
        return "\n".join(map(patch_display, self._lines))

    @property
    def files(self) -> int:
        """Number of places that ``}`` stops at."""
        return len(self._starts)

    def action_next_file(self) -> None:
        self._jump(bisect_right(self._starts, round(self.scroll_y)))

    def action_previous_file(self) -> None:
        self._jump(bisect_left(self._starts, round(self.scroll_y)) - 1)

    def _jump(self, index: int) -> None:
        if 0 <= index < len(self._starts):
            self.scroll_to(0, self._starts[index], animate=False)

    def render_line(self, y: int) -> Strip:
        width = self.scrollable_content_region.width
        row = round(self.scroll_y) + y
        base = self.rich_style
        if row >= len(self._lines):
            text = to_display(self._empty) if not self._lines and y == 0 else ""
            return Line(width).left(text, self._style("meta")).strip(base)
        style = base + self._style(self._roles[row])
        line = self._lines[row]
        shown = line
        if row >= self._summaries:
            shown = patch_display(line[:_MAX_LINE])
            if len(line) > _MAX_LINE:
                shown += f"⟨+{len(line) - _MAX_LINE} characters⟩"
        left = round(self.scroll_x)
        fill = style if self._roles[row] == "file" else base
        return cells.window(shown, style, left, width, fill)

    def _style(self, role: str) -> Style:
        return self.get_component_rich_style(f"dv--{role}", partial=True)


def _summary(file: FileDiff) -> str:
    """One line for a changed file, already safe to show."""
    text = file.added is not None and file.removed is not None
    count = f"+{file.added} -{file.removed}" if text else "binary"
    return f" {to_display(file.status[:9]):<9} {count:>11}  {to_display(file.path)}"


__all__ = ["DiffView", "code_display", "patch_display", "roles"]
