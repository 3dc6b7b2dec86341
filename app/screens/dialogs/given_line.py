"""One line of a question: its title, and what is typed or chosen there."""

from __future__ import annotations

from collections.abc import Sequence

from textual.containers import Horizontal
from textual.widget import Widget
from textual.widgets import Input, Static

from widgets.base.choice_line import ChoiceLine


class HearsLines:
    """A question that is told of each change in one of its lines."""

    def moved(self, name: str, value: str) -> None:
        """What stands in a field has changed, or is told for the first time."""
        raise NotImplementedError

    def on_input_changed(self, message: Input.Changed) -> None:
        message.stop()
        self.moved(message.input.id or "", message.value)

    def on_choice_line_changed(self, message: ChoiceLine.Changed) -> None:
        message.stop()
        self.moved(message.field, message.value)


def given_line(name: str, title: str, value: str, hint: str, words: Sequence[str] = ()) -> Widget:
    """A field of this id with the value that it begins with; with ``words`` one of them is chosen."""
    field = (
        ChoiceLine(words, value, hint, dom_id=name) if words else Input(value, placeholder=hint, id=name, compact=True)
    )
    return Horizontal(Static(title), field, classes="given", id=f"of-{name}")


def given_in(form: Widget, name: str) -> str:
    """What stands in a field now."""
    field = form.query_one(f"#{name}")
    assert isinstance(field, Input | ChoiceLine)
    return field.value.strip()
