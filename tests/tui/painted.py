"""What the screen shows, as the terminal gets it, and whether that is all."""

from __future__ import annotations

from typing import Any

from textual.app import App
from textual.screen import Screen
from textual.strip import Strip


def painted(screen: Screen[Any]) -> list[Strip]:
    """One strip a row. Textual has no public name for what it composed."""
    return list(screen._compositor.render_strips())


def under_way(app: App[Any]) -> bool:
    """Messages that nobody took yet, or what was put off until the next paint. Textual's own wait asks whether the
    process used the processor lately, which on a busy machine says nothing.
    """
    if app.return_code is not None or not app.screen_stack:
        return False
    screen = app.screen
    pumps = [app, *screen.walk_children(with_self=True)]
    return bool(screen._callbacks) or any(pump.message_queue_size or pump._next_callbacks for pump in pumps)
