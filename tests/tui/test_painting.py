"""A key's own change is painted at once and alone, and pieces that were painted make up the whole screen."""

from __future__ import annotations

from pathlib import Path
from time import monotonic
from typing import Any

import pytest
from textual._compositor import ChopsUpdate, Compositor, LayoutUpdate
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from app.screens.base import WatchScreen
from app.screens.dialogs.form import Form
from app.screens.floor import FloorScreen
from app.screens.queue import QueueScreen
from app.shell.watch_app import WatchApp
from app.terminal.size_classes import size_classes
from harness.events import types as t
from tests.tui.app_pilot import shown
from tests.tui.app_world import PUSH, World, crowd
from widgets.queue.queue_list import QueueList


def _asking(world: World) -> None:
    for number in range(20):
        world.ask(world.add(f"job-{number:02d}"), PUSH, title=f"push {number}")


class Terminal:
    """What a terminal that got these updates shows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.cells: dict[tuple[int, int], str] = {}
        self.pieces = 0
        original = Compositor.render_update

        def render_update(compositor: Compositor, *args: Any, **options: Any) -> object:
            update = original(compositor, *args, **options)
            if isinstance(update, ChopsUpdate):
                self._take(update)
            elif isinstance(update, LayoutUpdate):
                for y, strips in enumerate(update.strips, update.region.y):
                    x = 0
                    for strip in strips:
                        x = self._put(x, y, strip)
            return update

        monkeypatch.setattr(Compositor, "render_update", render_update)

    def _take(self, update: ChopsUpdate) -> None:
        self.pieces += 1
        for y, left, right in update.spans:
            for end, (x, strip) in zip(update.chop_ends[y], update.chops[y].items(), strict=True):
                if x < right and end > left:
                    assert strip is not None, f"nothing was drawn at {x}, {y}, where something changed"
                    self._put(x, y, strip.crop(0, min(end, right) - x))

    def _put(self, x: int, y: int, strip: Strip) -> int:
        assert strip.cell_length == len(strip.text)
        for at, letter in enumerate(strip.text, x):
            self.cells[at, y] = letter
        return x + len(strip.text)

    def grid(self, width: int, height: int) -> list[str]:
        return ["".join(self.cells.get((x, y), "?") for x in range(width)) for y in range(height)]


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 50)])
async def test_the_pieces_that_were_painted_make_up_the_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    terminal = Terminal(monkeypatch)
    async with shown(tmp_path, crowd, size=size) as s:
        for number, key in enumerate(["j", "j", "tab", "l", "tab", "k", "2", "j", "1", "G", "z", "g"]):
            await s.press(key)
            session = list(s.world.sessions.values())[number % 5]
            s.world.log(session, t.HarnessNote(level="info", text=f"note {number}", component="test"))
            s.world.push_rows(session)
            await s.until("all of it shown", lambda: s.app.idle)
        await s.until("the last piece painted", lambda: terminal.grid(*size) == s.grid)
        assert terminal.pieces > 12


async def test_a_key_is_painted_before_the_loop_turns_and_nothing_else_is_drawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shown(tmp_path, _asking) as s:
        await s.see("job-19")
        await s.until("the tick sleeping", lambda: s.app.idle)
        await s.pilot.pause()
        screen = s.app.screen
        assert isinstance(screen, FloorScreen)
        drawn: list[tuple[str, Region]] = []
        original = Widget.render_lines

        def render_lines(widget: Widget, crop: Region) -> list[Strip]:
            drawn.append((type(widget).__name__, crop))
            return original(widget, crop)

        monkeypatch.setattr(Widget, "render_lines", render_lines)
        frames = s.app.frames
        before = screen.list.selected
        await screen.action_do("list.down")
        assert screen.list.selected != before
        assert s.app.frames == frames + 1
        assert {name for name, _ in drawn} <= {"SessionList", "Container", "FloorScreen"}
        assert sum(crop.height for name, crop in drawn if name == "SessionList") <= 4
        chosen = s.app.snapshot.rows[screen.list.selected].name
        assert any(line.startswith("▌") and chosen in line for line in s.grid)


async def test_the_next_card_draws_two_requests_and_the_card_and_arranges_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with shown(tmp_path, _asking) as s:
        await s.until("all requests known", lambda: len(s.app.snapshot.approvals) == 20)
        await s.press("2")
        screen = s.app.screen
        assert isinstance(screen, QueueScreen)
        await s.until("the card armed", lambda: screen.can("queue.approve") and not screen.arming.refusal(monotonic()))
        arranged: list[object] = []
        rows: list[int] = []
        reflow = Compositor.reflow
        row = QueueList.render_line

        def arrange(of: Compositor, *args: Any, **options: Any) -> object:
            arranged.append(of)
            return reflow(of, *args, **options)

        def render_line(of: QueueList, y: int) -> Strip:
            rows.append(y)
            return row(of, y)

        monkeypatch.setattr(Compositor, "reflow", arrange)
        monkeypatch.setattr(QueueList, "render_line", render_line)
        monkeypatch.setattr(QueueList, "tick", lambda of, now: None)  # an age that moves on is painted as well
        before = screen.card.view
        await screen.action_do("queue.down")
        await s.until("the next card shown whole", lambda: screen.card.view != before and screen.card.fully_shown)
        await s.until("that card armed", lambda: not screen.arming.refusal(monotonic()))
        assert sorted(rows) == [0, 1, 2, 3]
        assert not arranged


@pytest.mark.parametrize("size", [(60, 20), (80, 24), (120, 40), (200, 50)])
async def test_no_screen_is_painted_as_for_another_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    """Not even the first frames, for which Textual does not know the size yet."""
    counted = WatchApp.post_display_hook
    frames: list[tuple[str, bool]] = []

    def look(app: WatchApp) -> None:
        counted(app)
        if isinstance(app.screen, (WatchScreen, Form)):
            frames.append((type(app.screen).__name__, set(size_classes(app).split()) <= set(app.screen.classes)))

    monkeypatch.setattr(WatchApp, "post_display_hook", look)
    async with shown(tmp_path, _asking, size=size) as s:
        await s.press("2", "3", "4", "5", "6", "1", "enter", "escape", "n")
    assert {"QueueScreen", "CostsScreen", "FleetScreen", "SessionScreen", "LaunchForm"} <= {name for name, _ in frames}
    assert all(fits for _, fits in frames), frames
