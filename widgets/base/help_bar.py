"""The last line of every screen: the keys that do something right now, and what they do; greyed, where there is room,
those that do something at other times, and why not now.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from rich.cells import cell_len
from rich.style import Style
from textual import events
from textual.message import Message
from textual.strip import Strip

from harness.domain.text.display_safe import to_display
from widgets.base.cells import Line
from widgets.base.lines import PaintedLines
from widgets.base.palette import palette


class KeyEntry(msgspec.Struct, frozen=True):
    """One key as shown, and what it does. ``why``: why it is refused now, empty when it is not; ``stays``: it keeps its
    place all the same, for it is refused for a moment only.
    """

    action: str
    key: str
    label: str
    why: str = ""
    stays: bool = True

    @property
    def size(self) -> int:
        """Cells with the gap behind it."""
        return cell_len(self.key) + 1 + cell_len(self.label) + 2


def arrange(entries: Sequence[KeyEntry], width: int) -> list[KeyEntry]:
    """Those that work and fit, in order; one too many is left out whole, never cut.

    The last entry always stays.
    """
    if not entries:
        return []
    last = entries[-1]
    room = width - 1 - last.size
    kept: list[KeyEntry] = []
    for entry in entries[:-1]:
        if entry.size > room:
            break
        room -= entry.size
        kept.append(entry)
    return [*kept, last]


def greyed(entries: Sequence[KeyEntry], room: int) -> list[tuple[KeyEntry, str]]:
    """Those that do not work now and fit behind the others, with the words of the reason as far as these fit whole."""
    found: list[tuple[KeyEntry, str]] = []
    for entry in entries:
        why = f"({to_display(entry.why)})"
        if entry.size + cell_len(why) <= room:
            found.append((entry, why))
            room -= entry.size + cell_len(why) + 1
        elif entry.size <= room:
            found.append((entry, ""))
            room -= entry.size
        else:
            break
    return found


class HelpBar(PaintedLines):
    """Shows entries; a click on one runs it, or has it say why not."""

    DEFAULT_CSS = "HelpBar { height: 1; }"

    class Pressed(Message):
        """An entry was clicked."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action

    def __init__(self, *, dom_id: str | None = None) -> None:
        super().__init__(id=dom_id)
        self._works: list[KeyEntry] = []
        self._refused: list[KeyEntry] = []

    @property
    def shown(self) -> list[tuple[str, str, str]]:
        """(action, key, label) of what works and is on screen now."""
        return [(entry.action, entry.key, entry.label) for entry in self._arranged if not entry.why]

    @property
    def greyed(self) -> list[tuple[str, str]]:
        """(action, why not) of what is on screen and does not work now."""
        waits = [(entry.action, entry.why) for entry in self._arranged if entry.why]
        return waits + [(entry.action, entry.why) for entry, _ in self._behind]

    @property
    def _arranged(self) -> list[KeyEntry]:
        return arrange(self._works, self.size.width)

    @property
    def _behind(self) -> list[tuple[KeyEntry, str]]:
        shown = self._arranged
        if len(shown) < len(self._works):
            return []  # nothing that does nothing may stand where something that does had no room
        return greyed(self._refused, self.size.width - 1 - sum(entry.size for entry in shown))

    def set_entries(self, entries: Sequence[tuple[str, str, str]]) -> None:
        """(action id, key as shown, label) of keys that always work."""
        self.set_standing([KeyEntry(*entry) for entry in entries])

    def set_standing(self, entries: Sequence[KeyEntry]) -> None:
        """What works, most useful first (the last one, help, always stays visible), then what does not."""
        works = [entry for entry in entries if entry.stays]
        refused = [entry for entry in entries if not entry.stays]
        if (works, refused) != (self._works, self._refused):
            self._works = works
            self._refused = refused
            self.refresh()

    def on_click(self, event: events.Click) -> None:
        x = 1
        for entry, size in (
            *((entry, entry.size) for entry in self._arranged),
            *((entry, entry.size + cell_len(why) + bool(why)) for entry, why in self._behind),
        ):
            if x <= event.x < x + size - 1:
                self.post_message(self.Pressed(entry.action))
                return
            x += size

    def render_line(self, y: int) -> Strip:
        key = palette(self)["key"]
        label = palette(self)["quiet"]
        grey = palette(self)["border"]
        line = Line(self.size.width).left(" ", Style.null())
        for entry in self._arranged:
            line.left(entry.key, grey if entry.why else key).left(f" {entry.label}  ", grey if entry.why else label)
        for entry, why in self._behind:
            line.left(f"{entry.key} {entry.label}" + f" {why}" * bool(why) + "  ", grey)
        return line.strip(self.rich_style)
