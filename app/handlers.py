"""What a screen does for the actions of the registry, and why it cannot do one of them now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from textual.binding import Binding, BindingType

from app.actions import ACTIONS


def _nothing_against_it() -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Handler:
    """``run`` does the action; ``why_not`` is a sentence that says why it would do nothing now, empty when it would do
    something; ``label`` is what the help bar calls it now, empty for its usual name.
    """

    run: Callable[[], object]
    why_not: Callable[[], str] = _nothing_against_it
    label: Callable[[], str] = _nothing_against_it


Handlers: TypeAlias = Mapping[str, Handler]
"""By action id."""


def bindings(*scopes: str, priority: bool = False) -> list[BindingType]:
    """The registry's bindings of these scopes, by action id so that the keymap can change them."""
    return [
        Binding(",".join(a.keys), f"do('{a.id}')", a.title, show=False, id=a.id, priority=priority)
        for a in ACTIONS
        if set(scopes) & set(a.scopes)
    ]
