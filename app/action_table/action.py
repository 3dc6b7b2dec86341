"""What an action is, and the scopes in which its keys act."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

Scope: TypeAlias = str
EVERYWHERE = "everywhere"
SCOPES: dict[Scope, str] = {
    EVERYWHERE: "Everywhere",
    "floor": "Floor",
    "panes": "Floor, while the panes have the focus",
    "queue": "Queue",
    "together": "Requests decided together",
    "session": "Session",
    "costs": "Costs",
    "fleet": "Fleet",
    "memory": "Memory",
    "rules": "Rules",
    "back": "Looking back",
    "review": "Review",
    "form": "Forms and questions",
    "launch": "The form that launches",
}


class Action(msgspec.Struct, frozen=True):
    """One thing the user can do. ``bar`` is its rank in the help bar (0 = not shown there), ``label`` its words there.

    ``decides``: it takes effect at once, so it must have been pressed by a hand (`app.input.typing_pace`). ``asks``: it
    asks something of the supervisor, so it does nothing while that does not answer.
    """

    id: str
    title: str
    help: str
    keys: tuple[str, ...]
    scopes: tuple[Scope, ...]
    label: str = ""
    bar: int = 0
    palette: bool = True
    decides: bool = False
    asks: bool = False


def act(
    ident: str,
    title: str,
    text: str,
    keys: str,
    scopes: str,
    label: str = "",
    bar: int = 0,
    *,
    palette: bool = True,
    decides: bool = False,
    asks: bool = False,
) -> Action:
    """An action from a line of the table; keys and scopes are written with blanks between them."""
    return Action(ident, title, text, tuple(keys.split()), tuple(scopes.split()), label, bar, palette, decides, asks)
