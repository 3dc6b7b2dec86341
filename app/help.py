"""The help screen: every key of the screen it was opened on, from the registry and the keymap in force."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
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
from harness.events.untrusted import to_display
from widgets.cells import Line
from widgets.palette import palette


@dataclass(frozen=True, slots=True)
class KeyLine:
    """A key of the table; without a title it is a heading. ``why``: why it would do nothing now (untrusted)."""

    keys: str
    title: str = ""
    help: str = ""
    why: str = ""


def lines(keymap: Keymap, scopes: tuple[str, ...], why: Callable[[str], str]) -> list[KeyLine]:
    """Every action in these scopes and everywhere, under headings; ``why`` says of an id why it is refused now."""
    made: list[KeyLine] = []
    for scope in (*scopes, EVERYWHERE):
        if made:
            made.append(KeyLine(""))
        made.append(KeyLine(SCOPES[scope]))
        # What floor and panes share stands once, under the first of them.
        before = scopes[: scopes.index(scope)] if scope in scopes else ()
        made += [
            KeyLine(
                "  ".join(show_key(key) for key in keymap.keys[action.id]), action.title, action.help, why(action.id)
            )
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

    def __init__(self, table: list[KeyLine]) -> None:
        super().__init__()
        self._table = table
        self._key_width = min(24, max((cell_len(one.keys) for one in table if one.title), default=8) + 1)

    def on_resize(self) -> None:
        self.virtual_size = Size(self.scrollable_content_region.width, len(self._table))

    def _style(self, name: str) -> Style:
        return palette(self)[name]

    def render_line(self, y: int) -> Strip:
        y += self.scroll_offset.y
        line = Line(self.scrollable_content_region.width)
        if y >= len(self._table):
            return line.strip(self.rich_style)
        one = self._table[y]
        if not one.title:
            return line.left(f" {one.keys}" if one.keys else "", self._style("heading")).strip(self.rich_style)
        grey = self._style("border") if one.why else None
        title = f"{one.title:<32}" if self.scrollable_content_region.width >= 90 else f"{one.title}  "
        line.left(f" {one.keys:>{self._key_width}}  ", grey or self._style("key")).left(
            title, grey or self._style("text")
        )
        text = f"(not now: {to_display(one.why, limit=200)}) {one.help}" if one.why else one.help
        return line.left(text, grey or self._style("quiet")).strip(self.rich_style)


class HelpScreen(ModalScreen[None]):
    """All keys of the screen below; greyed, with the reason, those that would be refused when it was opened."""

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

    def __init__(self, table: list[KeyLine]) -> None:
        super().__init__()
        self._table = table

    def compose(self) -> ComposeResult:
        with Vertical():
            yield KeyTable(self._table)
            yield Static(
                Content.styled(
                    "esc closes · every key can be changed: [ui.keys] in config.toml, see docs/keys.md", "$text-muted"
                )
            )
