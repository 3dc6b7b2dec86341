"""The help screen: every key of the screen it was opened on, from the registry and the keymap in force."""

from __future__ import annotations

from typing import ClassVar

from rich.cells import cell_len
from rich.style import Style
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.geometry import Size
from textual.screen import ModalScreen
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import Static

from app.action_table.action import EVERYWHERE, SCOPES
from app.actions import ACTIONS, show_key
from app.keymap import Keymap
from widgets.cells import Line
from widgets.palette import palette


def lines(keymap: Keymap, scopes: tuple[str, ...]) -> list[tuple[str, str, str]]:
    """(keys, title, help) of every action in these scopes and everywhere; a line with an empty title is a heading."""
    made: list[tuple[str, str, str]] = []
    for scope in (*scopes, EVERYWHERE):
        if made:
            made.append(("", "", ""))
        made.append((SCOPES[scope], "", ""))
        # What floor and panes share stands once, under the first of them.
        before = scopes[: scopes.index(scope)] if scope in scopes else ()
        made += [
            ("  ".join(show_key(key) for key in keymap.keys[action.id]), action.title, action.help)
            for action in ACTIONS
            if scope in action.scopes and not set(before) & set(action.scopes)
        ]
    return made


class KeyTable(ScrollView, can_focus=True):
    """Scrolls the keys."""

    DEFAULT_CSS = """
    KeyTable {
        overflow-x: hidden;
        scrollbar-size-vertical: 1;
        background: $surface;
        &:focus { background-tint: $foreground 0%; }
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("up,k", "scroll_up", show=False),
        Binding("down,j", "scroll_down", show=False),
        Binding("pageup", "page_up", show=False),
        Binding("pagedown,space", "page_down", show=False),
        Binding("home,g", "scroll_home", show=False),
        Binding("end,G", "scroll_end", show=False),
    ]

    def __init__(self, table: list[tuple[str, str, str]]) -> None:
        super().__init__()
        self._table = table
        self._key_width = min(24, max((cell_len(keys) for keys, title, _ in table if title), default=8) + 1)

    def on_resize(self) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._table))

    def _style(self, name: str) -> Style:
        return palette(self)[name]

    def render_line(self, y: int) -> Strip:
        y += self.scroll_offset.y
        line = Line(self.scrollable_content_region.width)
        if y >= len(self._table):
            return line.strip(self.rich_style)
        keys, title, text = self._table[y]
        if not title:
            return line.left(f" {keys}" if keys else "", self._style("heading")).strip(self.rich_style)
        line.left(f" {keys:>{self._key_width}}  ", self._style("key")).left(
            f"{title:<32}" if self.scrollable_content_region.width >= 90 else f"{title}  ", self._style("text")
        )
        return line.left(text, self._style("quiet")).strip(self.rich_style)


class HelpScreen(ModalScreen[None]):
    """All keys of the screen below."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; background: $background 60%; }
    HelpScreen > Vertical {
        width: 120; max-width: 98%; height: 96%; background: $surface; border: round $border; padding: 0 1;
    }
    HelpScreen Static { height: 1; }
    HelpScreen KeyTable { height: 1fr; }
    HelpScreen:ansi { background: ansi_default; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,question_mark,f1", "dismiss", show=False)]

    def __init__(self, keymap: Keymap, scopes: tuple[str, ...]) -> None:
        super().__init__()
        self._keymap = keymap
        self._scopes = scopes

    def compose(self) -> ComposeResult:
        with Vertical():
            yield KeyTable(lines(self._keymap, self._scopes))
            yield Static(
                Content.styled(
                    "esc closes · every key can be changed: [ui.keys] in config.toml, see docs/keys.md", "$text-muted"
                )
            )
