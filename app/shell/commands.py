"""The command palette: every action of this screen, first those that are possible now, last the others with the reason
why not; and every session by name.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeAlias, cast

from textual.app import App
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from app.framework.application import host_of
from app.screens.base import WatchScreen
from harness.domain.text.display_safe import to_display

_Command: TypeAlias = tuple[str, str, Callable[[], object]]
"""Title, what it does or why it does nothing now, and doing it."""


def open_palette(app: App[int]) -> None:
    """Show the palette above the present screen."""
    if not isinstance(app.screen, CommandPalette):
        app.push_screen(CommandPalette(providers=[Registry], placeholder="run a command or go to a session"))


class Registry(Provider):
    """Commands from the action registry and the sessions of the floor."""

    def _commands(self) -> list[_Command]:
        screen = self.screen
        if not isinstance(screen, WatchScreen):
            return []
        host = host_of(self.app)
        made: list[_Command] = []
        refused: list[_Command] = []
        for action in screen.own_actions():
            if not action.palette:
                continue
            why = screen.refused_now(action.id)
            key = f"  [{shown}]" if (shown := host.keys.shown(action.id)) else ""
            text = f"not now: {why}" if why else action.help + key
            run = partial(self.app.run_action, f"do('{action.id}')", screen)
            (refused if why else made).append((action.title, text, run))
        rows = sorted(host.snapshot.rows.values(), key=lambda r: r.name)
        made += [
            (
                f"Open {to_display(row.name, limit=60)}",
                f"{row.state}: {to_display(row.detail, limit=80)}",
                partial(host.open_session, row.sid),
            )
            for row in rows
        ]
        return made + refused

    async def discover(self) -> Hits:
        for title, text, run in self._commands():
            yield DiscoveryHit(Content(title), run, text=title, help=cast("str", Content(text)))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for title, text, run in self._commands():
            score = matcher.match(title)
            if score > 0:
                yield Hit(score, Content(title), run, text=title, help=cast("str", Content(text)))
