"""Several words in a line, of which one is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from rich.cells import cell_len
from textual import events
from textual.binding import Binding, BindingType
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from widgets.base.cells import Line
from widgets.base.palette import palette

_KEYS = "  ←→ chooses"


class ChoiceLine(Widget, can_focus=True):
    """The arrows and space go from word to word, and letters to the first word that begins so."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("left", "step(-1)", show=False),
        Binding("right,space", "step(1)", show=False),
    ]

    class Changed(Message):
        """Another word was chosen in the line of this id."""

        def __init__(self, field: str, value: str) -> None:
            super().__init__()
            self.field = field
            self.value = value

    def __init__(self, words: Sequence[str], value: str, hint: str = "", *, dom_id: str) -> None:
        """``hint`` stands beside the words where there is room."""
        super().__init__(id=dom_id)
        self._words = tuple(words)
        self._hint = f"  {hint}" if hint else ""
        self._typed = ""
        self.value = value
        """The word that is chosen."""

    def choose(self, word: str) -> None:
        """Choose this word."""
        if word != self.value:
            self.value = word
            self.refresh()
            self.post_message(self.Changed(self.id or "", word))

    def action_step(self, step: int) -> None:
        """Choose the next word, or the one before."""
        self._typed = ""
        self.choose(self._words[(self._words.index(self.value) + step) % len(self._words)])

    def on_key(self, event: events.Key) -> None:
        if event.character is None or not event.character.isalpha():
            return
        event.stop()
        for typed in (self._typed + event.character.lower(), event.character.lower()):
            if found := next((word for word in self._words if word.startswith(typed)), ""):
                self._typed = typed
                self.choose(found)
                return

    def on_blur(self) -> None:
        self._typed = ""
        self.refresh()

    def on_focus(self) -> None:
        self.refresh()

    def on_click(self, event: events.Click) -> None:
        x = 0
        for word in self._words:
            if x <= event.x < (x := x + cell_len(word) + 2):
                self.choose(word)

    def render_line(self, y: int) -> Strip:
        style = palette(self)
        line = Line(self.size.width)
        for word in self._words:
            chosen = word == self.value
            line.left(f"[{word}]" if chosen else f" {word} ", style["heading" if chosen else "quiet"])
        for text, role in ((_KEYS if self.has_focus else "", "key"), (self._hint, "quiet")):
            if cell_len(text) <= line.room:
                line.left(text, style[role])
        return line.strip(self.rich_style)
