"""The table that the rooms of this folder fill: what a record of a kind changes in a session's state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from harness.events import types as t
from harness.projections.state.session_state import SessionState

B = TypeVar("B", bound=t.Body)
Change = Callable[[SessionState, t.Record, B], None]


class Handlers:
    """By the class of a body, the function that applies it in place; each room has one and the fold joins them."""

    def __init__(self) -> None:
        self.table: dict[type[t.Body], Callable[[SessionState, t.Record, Any], None]] = {}

    def on(self, cls: type[B]) -> Callable[[Change[B]], Change[B]]:
        """Register the decorated function for bodies of this class."""

        def register(fn: Change[B]) -> Change[B]:
            self.table[cls] = fn
            return fn

        return register
