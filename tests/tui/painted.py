"""What the screen shows, as the terminal gets it."""

from __future__ import annotations

from typing import Any

from textual.screen import Screen
from textual.strip import Strip


def painted(screen: Screen[Any]) -> list[Strip]:
    """One strip a row. Textual has no public name for what it composed."""
    return list(screen._compositor.render_strips())
