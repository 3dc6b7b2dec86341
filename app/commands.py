"""The command palette: every action of the registry that makes sense now, and every session by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from app.screens.base import WatchScreen
from harness.events.untrusted import to_display

if TYPE_CHECKING:
    from app.watch_app import WatchApp


def open_palette(app: WatchApp) -> None:
    """Show the palette above the present screen."""
    if not isinstance(app.screen, CommandPalette):
        app.push_screen(CommandPalette(providers=[Registry], placeholder="run a command or go to a session"))


class Registry(Provider):
    """Commands from the action registry and the sessions of the floor."""

    def _commands(self) -> list[tuple[str, str, Callable[[], Any]]]:
        screen = self.screen
        if not isinstance(screen, WatchScreen):
            return []
        app = cast("WatchApp", self.app)
        made: list[tuple[str, str, Callable[[], Any]]] = []
        for action in screen.active_actions():
            if action.palette:
                key = app.keys.shown(action.id)
                made.append(
                    (
                        action.title,
                        f"{action.help}{f'  [{key}]' if key else ''}",
                        partial(app.run_action, f"do('{action.id}')", screen),
                    )
                )
        rows = sorted(app.snapshot.rows.values(), key=lambda r: r.name)
        made += [
            (
                f"Open {to_display(row.name, limit=60)}",
                f"{row.state}: {to_display(row.detail, limit=80)}",
                partial(app.open_session, row.sid),
            )
            for row in rows
        ]
        return made

    async def discover(self) -> Hits:
        for title, text, run in self._commands():
            yield DiscoveryHit(Content(title), run, text=title, help=cast("str", Content(text)))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for title, text, run in self._commands():
            score = matcher.match(title)
            if score > 0:
                yield Hit(score, Content(title), run, text=title, help=cast("str", Content(text)))
