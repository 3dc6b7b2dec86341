"""What a screen does for the actions of the registry, and why it cannot do one of them now."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias

import msgspec
from textual.binding import Binding, BindingType

from app.action_table.registry import ACTIONS


def _nothing_against_it() -> str:
    return ""


class Handler(msgspec.Struct, frozen=True):
    """``run`` does the action; ``why_not`` is a sentence that says why it would do nothing now, empty when it would do
    something; ``label`` is what the help bar calls it now, empty for its usual name. ``not_yet`` says why it would be
    refused this moment all the same, by what it looks at when it runs; the help bar greys it meanwhile.
    """

    run: Callable[[], object]
    why_not: Callable[[], str] = _nothing_against_it
    label: Callable[[], str] = _nothing_against_it
    not_yet: Callable[[], str] = _nothing_against_it


Handlers: TypeAlias = Mapping[str, Handler]
"""By action id."""


class Moves(Protocol):
    """A list in which one line is selected."""

    def move(self, step: int, /) -> object:
        """Move the selection by so many lines, as far as there are any."""


_ALL_THE_WAY = 10**6


def in_list(at: Callable[[], Moves], why_not: Callable[[], str], room: str = "list") -> dict[str, Handler]:
    """The actions that move the selection of a screen's list; ``room``: the first part of their ids."""

    def by(step: int) -> Handler:
        return Handler(lambda: at().move(step), why_not)

    return {
        f"{room}.up": by(-1),
        f"{room}.down": by(1),
        f"{room}.first": by(-_ALL_THE_WAY),
        f"{room}.last": by(_ALL_THE_WAY),
    }


def bindings(*scopes: str, priority: bool = False) -> list[BindingType]:
    """The registry's bindings of these scopes, by action id so that the keymap can change them. What belongs to fewer
    of them comes first: it is what says why a key that two share does nothing.
    """
    found = [a for a in ACTIONS if set(scopes) & set(a.scopes)]
    return [
        Binding(",".join(a.keys), f"do('{a.id}')", a.title, show=False, id=a.id, priority=priority)
        for a in sorted(found, key=lambda a: len(a.scopes))
    ]
