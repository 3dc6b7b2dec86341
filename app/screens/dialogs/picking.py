"""Choosing one of several: what is typed narrows the list, enter takes the marked one, and esc takes none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rich.cells import cell_len, set_cell_size
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from harness.domain.text.display_safe import to_display

_MOST = 200
"""So many are listed at once; typing finds the others."""
_LONGEST = 400


@dataclass(frozen=True, slots=True)
class Choice:
    """One of several: what it is called, what stands beside that, and what is found by too. All of it untrusted."""

    title: str
    beside: str = ""
    more: str = ""

    def fits(self, words: Sequence[str]) -> bool:
        """True when every word is in it somewhere."""
        text = f"{self.title}\n{self.beside}\n{self.more}".lower()
        return all(word in text for word in words)


class Picker(ModalScreen[int | None]):
    """Dismissed with the number of the choice."""

    CSS_PATH = "picking.tcss"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "dismiss(None)", show=False),
        Binding("down", "move(1)", show=False, priority=True),
        Binding("up", "move(-1)", show=False, priority=True),
        Binding("enter", "take", show=False, priority=True),
    ]

    def __init__(self, title: str, choices: Sequence[Choice]) -> None:
        super().__init__()
        self._called = title
        self._choices = choices
        self._listed: list[int] = []

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Static(Content.styled(self._called, "bold"))
            yield Input(placeholder="type to find", id="find", compact=True)
            yield OptionList(compact=True)
            yield Static(Content.styled("enter takes it  esc takes none", "$text-muted"))

    def on_mount(self) -> None:
        self._list()
        self.query_one(OptionList).can_focus = False
        self.query_one(Input).focus()

    def on_resize(self) -> None:
        self.call_after_refresh(self._list)

    def on_input_changed(self, message: Input.Changed) -> None:
        message.stop()
        self._list()

    def _list(self) -> None:
        words = self.query_one(Input).value.lower().split()
        self._listed = [i for i, one in enumerate(self._choices) if one.fits(words)][:_MOST]
        options = self.query_one(OptionList)
        options.clear_options()
        room = options.size.width
        options.add_options([Option(_line(self._choices[i], room)) for i in self._listed])
        options.highlighted = 0 if self._listed else None

    def on_option_list_option_selected(self, message: OptionList.OptionSelected) -> None:
        message.stop()
        self.dismiss(self._listed[message.option_index])

    def action_move(self, step: int) -> None:
        """Mark the next or the one before."""
        options = self.query_one(OptionList)
        if self._listed:
            options.highlighted = ((options.highlighted or 0) + step) % len(self._listed)

    def action_take(self) -> None:
        """Take the marked one."""
        marked = self.query_one(OptionList).highlighted
        if marked is not None and self._listed:
            self.dismiss(self._listed[marked])


def _line(one: Choice, room: int) -> Content:
    """In one line; where the ``room`` (0: nobody knows it) is too small for a path, its end is what tells it apart."""
    title = to_display(one.title, limit=_LONGEST)
    if title.startswith("/") and 0 < room < cell_len(title):
        title = f"…{set_cell_size(title[::-1], room - 1)[::-1]}"
    beside = f"  {to_display(one.beside, limit=120)}" if one.beside else ""
    return Content.assemble(title, (beside, "$text-muted"))
