"""What is typed into a form is looked at once a person rests."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from textual.timer import Timer
from textual.widget import Widget

TYPING_S = 0.3
"""Seconds without a key after which what was typed is looked at."""


class TypingRest:
    """The fields of a form by their ids, and a look at them when none was typed into for a while."""

    def __init__(self, form: Widget, fields: Mapping[str, tuple[str, str, str]], look: Callable[[], None]) -> None:
        """``fields``: (title, value that it begins with, hint) of each."""
        self._form = form
        self._look = look
        self._typed = {name: value for name, (_, value, _) in fields.items()}
        self._timer: Timer | None = None

    def changed(self, name: str, value: str) -> bool:
        """True when this field has another value now: an input also tells the value that it begins with, on a busy
        machine after the first look came back.
        """
        before = self._typed[name]
        self._typed[name] = value
        return value != before

    def look_soon(self) -> None:
        """Look when nothing more is typed."""
        if self._timer is not None:
            self._timer.stop()
        self._timer = self._form.set_timer(TYPING_S, self._look)
