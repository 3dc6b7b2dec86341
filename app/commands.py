"""The command palette: every action of the registry that makes sense now, and every session by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import cast

from textual.app import App
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from app.host import host_of
from app.screens.base import WatchScreen
from harness.events.untrusted import to_display


def open_palette(app: App[int]) -> None:
    """Show the palette above the present screen."""
    if not isinstance(app.screen, CommandPalette):
        app.push_screen(CommandPalette(providers=[Registry], placeholder="run a command or go to a session"))


class Registry(Provider):
    """Commands from the action registry and the sessions of the floor."""

    def _commands(self) -> list[tuple[str, str, Callable[[], object]]]:
        screen = self.screen
        if not isinstance(screen, WatchScreen):
            return []
        host = host_of(self.app)
        made: list[tuple[str, str, Callable[[], object]]] = []
        for action in screen.active_actions():
            if action.palette:
                key = host.keys.shown(action.id)
                made.append(
                    (
                        action.title,
                        f"{action.help}{f'  [{key}]' if key else ''}",
                        partial(self.app.run_action, f"do('{action.id}')", screen),
                    )
                )
        rows = sorted(host.snapshot.rows.values(), key=lambda r: r.name)
        made += [
            (
                f"Open {to_display(row.name, limit=60)}",
                f"{row.state}: {to_display(row.detail, limit=80)}",
                partial(host.open_session, row.sid),
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
