"""``make screenshots``: pictures of a real run. Plays the demo's fleet, opens the real application on it at several
sizes, keeps SVG → PNG.

PNGs are made by headless Chromium with Fira Code and Noto fonts; without Chromium the command says so and stops.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeAlias

from app.client import snapshot
from app.demo import long
from app.demo.fleet import PARTS, Demo
from app.input import keymap
from app.screens.queue import QueueScreen
from app.shell.watch_app import WatchApp
from harness.domain.calls.approval_kind import Request
from harness.protocol.client import ensure_supervisor
from harness.protocol.paths import ensure_private
from tests.fleetlib import wait_for

OUT = Path(__file__).parent.parent / "screenshots"
SIZES = ((80, 24), (120, 40), (200, 50))
THEMES = ("light", "ansi")
_TRIES = 3
LOOKING = "looking&#160;…"
"""What a card's foot says before its key counts, as a picture spells it."""
Save: TypeAlias = Callable[[str, str], None]
"""Keeps a picture: its name, and itself as SVG."""


def chromium_here() -> str | None:
    """The path of a Chromium; None when there is none."""
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def to_png(chromium: str, svg: str, target: Path, *, limit_s: float = 60.0) -> None:
    """Render one SVG by headless Chromium at its own size. One that does not come back, as happens about once in some
    hundred, is tried again with a profile of its own.
    """
    for left in reversed(range(_TRIES)):
        try:
            _render(chromium, svg, target, limit_s)
            return
        except subprocess.TimeoutExpired:
            if not left:
                raise


def _render(chromium: str, svg: str, target: Path, limit_s: float) -> None:
    (sizes,) = re.findall(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)[:1]
    width, height = (int(float(size)) + 1 for size in sizes)
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(
            '<!doctype html><meta charset="utf-8">'  # without it Chromium guesses, and not always well
            f"<style>body{{margin:0;background:#000}}svg{{display:block;width:{width}px;height:{height}px}}</style>"
            f"{svg}",
            "utf-8",
        )
        flags = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--no-first-run",
            f"--user-data-dir={folder}/profile",
        ]
        command = [chromium, *flags, f"--window-size={width},{height}", f"--screenshot={target}", str(page)]
        started = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, process_group=0)
        try:
            status = started.wait(limit_s)
        except BaseException:
            os.killpg(started.pid, signal.SIGKILL)  # its helpers would go on, and write into a folder that is gone
            started.wait()
            raise
        if status:
            raise subprocess.CalledProcessError(status, command)


async def settle(app: WatchApp) -> None:
    """Wait until everything known is painted: five looks in a row without a new frame, or 3 s on a screen that moves by
    itself.
    """
    calm = 0
    frames = -1
    for _ in range(30):
        await asyncio.sleep(0.1)
        calm = calm + 1 if app.frames == frames and app.idle else 0
        frames = app.frames
        if calm == 5:
            return


async def shoot(demo: Demo, save: Save, size: tuple[int, int], theme: str, stage: str) -> None:
    """The screens of one moment at one size and theme."""
    app = WatchApp(demo.folders, keymap.build("default", {}), theme=theme, first=snapshot.first_look(demo.folders))
    suffix = f"{size[0]}x{size[1]}" + ("" if theme == "dark" else f"-{theme}")
    async with app.run_test(size=size) as pilot:

        async def keep(name: str) -> None:
            await pilot.pause()
            await settle(app)
            for _ in range(30):  # a card's foot says for half a second that it is being looked at
                if LOOKING not in app.export_screenshot():
                    break
                await asyncio.sleep(0.1)
            save(f"{name}-{suffix}", app.export_screenshot())

        await keep("floor" if stage == "waiting" else "floor-working")
        if stage != "waiting":
            return
        await pilot.press("2")
        await keep("queue")
        assert isinstance(app.screen, QueueScreen)
        await pilot.press("escape", "enter")
        await keep("session")
        await pilot.press("right_square_bracket")  # past the log
        for name in ("plan", "diff"):
            await pilot.press("right_square_bracket")
            await keep(f"session-{name}")
        await pilot.press("escape", "question_mark")
        await keep("help")
        await pilot.press("escape", "n")
        await keep("launch")
        await pilot.press("escape", "4")
        await keep("fleet")
        await pilot.press("T")
        await keep("timeline")
        await pilot.press("escape", "b", "o")  # from a day earlier on: the look before this one moved its mark
        await keep("since")


async def shoot_all(demo: Demo, save: Save) -> None:
    """The demo's four agents: nobody yet, at work, and where two of them wait."""
    demo.start_simulator(1.0)
    ensure_supervisor(demo.folders).close()
    empty = WatchApp(demo.folders, keymap.build("default", {}), first=snapshot.first_look(demo.folders))
    async with empty.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await settle(empty)
        save("floor-empty-120x40", empty.export_screenshot())
    for part in PARTS:
        demo.launch(part)
    await asyncio.to_thread(
        wait_for, "agents at work", lambda: all(r.get("tool_calls", 0) >= 3 for r in demo.watchfloor("ls")), 60
    )
    await shoot(demo, save, (120, 40), "dark", "working")
    await asyncio.to_thread(wait_for, "push and cap in the queue", lambda: len(demo.watchfloor("approvals")) == 2, 120)
    await asyncio.to_thread(
        wait_for, "the others done", lambda: sum(r["state"] == "done" for r in demo.watchfloor("ls")) == 2, 120
    )
    for size in SIZES:
        await shoot(demo, save, size, "dark", "waiting")
    for theme in THEMES:
        await shoot(demo, save, (120, 40), theme, "waiting")


@contextlib.contextmanager
def played() -> Iterator[Demo]:
    """The folders of a demo of its own, which ends with the block."""
    with tempfile.TemporaryDirectory(prefix="fleet-") as folder:
        demo = Demo(Path(folder))
        for path in (demo.folders.state, demo.folders.runtime, demo.folders.config):
            ensure_private(path)
        try:
            yield demo
        finally:
            demo.stop()


async def shoot_long(demo: Demo, save: Save) -> None:
    """The long demo where a gate of its plan waits: floor, plan, transcript, and the plan in a pane."""
    sid = long.prepare(demo, 0.1)
    await asyncio.to_thread(wait_for, "its gate", lambda: _at_the_gate(demo), 400)
    for size in SIZES[:2]:
        suffix = f"{size[0]}x{size[1]}"
        app = WatchApp(demo.folders, keymap.build("default", {}), first=snapshot.first_look(demo.folders))
        async with app.run_test(size=size) as pilot:
            for name, keys in (("pane", ("P",)), ("session", ("enter",)), ("plan", ("P",))):
                await settle(app)
                await pilot.press(*keys)
                await settle(app)
                save(f"long-{name}-{suffix}", app.export_screenshot())
    assert [row["sid"] for row in demo.watchfloor("ls")] == [sid]


def _at_the_gate(demo: Demo) -> bool:
    """Whether the plan's gate waits; what else is asked on the way is answered as the demo does."""
    asked = demo.watchfloor("approvals")
    for item in asked:
        if item["kind"] == Request.PROTECTED:
            demo.watchfloor("deny", str(item["approval_id"]), "The test stays. Write the function.")
    return any(item["kind"] == Request.GATE for item in asked)


async def main() -> int:
    if (chromium := chromium_here()) is None:
        print(
            "make screenshots needs Chromium and fonts; on Debian: chromium fonts-firacode fonts-noto-cjk"
            " fonts-noto-color-emoji"
        )
        return 1
    OUT.mkdir(exist_ok=True)

    taken: dict[str, str] = {}

    def render() -> None:
        """What was taken, once its fleet is gone: pictures cost more than all agents of it."""
        for name, svg in taken.items():
            to_png(chromium, svg, OUT / f"{name}.png")
            print(OUT / f"{name}.png", flush=True)
        taken.clear()

    with played() as demo:
        demo.build()
        with contextlib.chdir(demo.repo):
            await shoot_all(demo, taken.__setitem__)
    render()
    with played() as demo:
        await shoot_long(demo, taken.__setitem__)
    render()
    return 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
