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
from app.action_table.registry import ACTIONS, show_key
from app.input.keymap import Keymap
from harness.domain.text.display_safe import to_display
from widgets.base.cells import Line, wrap
from widgets.base.palette import palette

_BESIDE = 90
"""From so many cells on the words of a key stand in a column beside its title."""
_TITLE = 32


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
        overflow: hidden scroll;
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
        self._drawn: list[tuple[KeyLine, str, str, str]] = []
        """Lines on screen: whose they are, and what of its keys, its title and its words stands on each."""

    def on_resize(self) -> None:
        width = self.scrollable_content_region.width
        self._drawn = [(one, *parts) for one in self._table for parts in self._parts(one, width)]
        self.virtual_size = Size(width, len(self._drawn))

    def _parts(self, one: KeyLine, width: int) -> list[tuple[str, str, str]]:
        """What of it stands on each line of ``width`` cells: all of its words, beside its title or below it."""
        if not one.title:
            return [(f" {one.keys}" if one.keys else "", "", "")]
        keys = f" {one.keys:>{self._key_width}}  "
        blank = " " * (self._key_width + 3)
        words = f"(not now: {to_display(one.why, limit=200)}) {one.help}" if one.why else one.help
        title = f"{one.title + '  ':<{_TITLE}}" if width >= _BESIDE else f"{one.title}  "
        room = width - cell_len(keys) - cell_len(title)
        if width >= _BESIDE or cell_len(words) <= room:
            first, *rest = wrap(words, room)
            return [(keys, title, first), *((blank, " " * cell_len(title), more) for more in rest)]
        return [(keys, one.title, ""), *((blank, "", more) for more in wrap(words, width - len(blank)))]

    def _style(self, name: str) -> Style:
        return palette(self)[name]

    def render_line(self, y: int) -> Strip:
        y += self.scroll_offset.y
        line = Line(self.scrollable_content_region.width)
        if y >= len(self._drawn):
            return line.strip(self.rich_style)
        one, keys, title, words = self._drawn[y]
        if not one.title:
            return line.left(keys, self._style("heading")).strip(self.rich_style)
        grey = self._style("border") if one.why else None
        line.left(keys, grey or self._style("key")).left(title, grey or self._style("text"))
        return line.left(words, grey or self._style("quiet")).strip(self.rich_style)


class HelpScreen(ModalScreen[None]):
    """All keys of the screen below; greyed, with the reason, those that would be refused when it was opened."""

    DEFAULT_CSS = """
    HelpScreen { align: center middle; background: $background 60%; }
    HelpScreen > Vertical {
        width: 120; max-width: 98%; height: 96%; background: $surface; border: round $border; padding: 0 1;
    }
    HelpScreen Static { height: auto; }
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
