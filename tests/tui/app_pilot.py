"""Runs the whole application on a headless terminal against a `World`, and reads its screen as text."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import cast

import pytest
from textual import events
from textual.keys import key_to_character
from textual.pilot import Pilot
from textual.screen import Screen

from app.client import snapshot
from app.client.feed import PATIENCE, Patience
from app.input import keymap
from app.screens.base import WatchScreen
from app.shell.navigation import Opening
from app.shell.watch_app import WatchApp
from harness.protocol.connection.transport import UnixSocket
from tests.tui.app_world import World, folders
from tests.tui.painted import painted, under_way
from widgets.base.help_bar import HelpBar

SIZES = (
    (60, 20),
    pytest.param((80, 24), marks=pytest.mark.slow),
    (120, 40),
    pytest.param((200, 50), marks=pytest.mark.slow),
)
"""Terminal sizes for a test that is made for each of them; `make test` plays two of the four."""


class Far(UnixSocket):
    """A way to a supervisor whose disk is not ours."""

    @property
    def local(self) -> bool:
        return False


class Shown:
    """One running application with its world."""

    def __init__(self, world: World, app: WatchApp, pilot: Pilot[int]) -> None:
        self.world = world
        self.app = app
        self.pilot = pilot

    @property
    def grid(self) -> list[str]:
        """The screen's lines as text."""
        screen: Screen[object] = self.app.screen
        return [strip.text for strip in painted(screen)]

    @property
    def text(self) -> str:
        return "\n".join(self.grid)

    @property
    def help(self) -> list[tuple[str, str, str]]:
        """What the help bar shows."""
        return [entry for bar in self.app.screen.query(HelpBar) for entry in bar.shown]

    @property
    def screen(self) -> WatchScreen:
        return cast("WatchScreen", self.app.screen)

    async def until(self, name: str, condition: Callable[[], object], timeout: float = 60.0) -> None:
        """Wait for a named condition; shows the screen when it does not come."""
        deadline = time.monotonic() + timeout
        while not condition():
            assert time.monotonic() < deadline, f"{name} did not come true; the screen:\n{self.text}"
            await self.pilot.pause(0.01)
        await self.settle()

    async def settle(self) -> None:
        """Wait until what is under way was done and painted, however long it waits for the processor."""
        await self.pilot.pause()
        deadline = time.monotonic() + 60
        while under_way(self.app):
            assert time.monotonic() < deadline, f"it never comes to rest; the screen:\n{self.text}"
            await self.pilot.pause(0)

    async def see(self, *texts: str) -> None:
        """Wait until all these texts are on screen."""
        await self.until(f"seeing {texts}", lambda: all(text in self.text for text in texts))

    async def press(self, *keys: str) -> None:
        """Press keys at human pace."""
        for key in keys:
            await asyncio.sleep(0.03)
            event = events.Key(key, key_to_character(key))
            event.set_sender(self.app)
            self.app.post_message(event)
            await self.settle()


@contextlib.asynccontextmanager
async def shown(
    root: Path,
    scene: Callable[[World], object] = lambda world: None,
    *,
    size: tuple[int, int] = (120, 40),
    theme: str = "dark",
    preset: str = "default",
    serve: bool = True,
    looked: bool = False,
    session: str | None = None,
    patience: Patience = PATIENCE,
    far: bool = False,
    away: bool = False,
) -> AsyncIterator[Shown]:
    """The application on a floor made by ``scene``, connected; ``looked``: as the program does it, with a look at the
    fleet before the first paint; ``far``: from where the sessions' folders cannot be read; ``away``:
    after an absence.
    """
    world = World(folders(root))
    scene(world)
    if serve:
        await world.start()
    first = await asyncio.to_thread(snapshot.first_look, world.folders) if looked else None
    transport = Far(world.folders.supervisor_socket) if far else None
    keys = keymap.build(preset, {})
    app = WatchApp(
        world.folders,
        keys,
        theme=theme,
        opening=Opening(session, away),
        first=first,
        patience=patience,
        transport=transport,
    )
    try:
        async with app.run_test(size=size, notifications=True) as pilot:
            made = Shown(world, app, pilot)
            if serve:
                await made.until("connected", lambda: app.snapshot.live)
                await pilot.pause(0.06)
            yield made
    finally:
        await world.stop()
        for each in world.sessions.values():
            each.writer.close()
