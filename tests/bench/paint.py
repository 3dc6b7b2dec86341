"""First paint of the floor with 50 known sessions against a minimal Textual application."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.bench.screen import Screen
from tests.bench.stock import stocked
from tests.bench.table import Figure, bench, ratio

MINIMAL = """
from textual.app import App
from textual.widgets import Static
class Minimal(App):
    def compose(self):
        yield Static("minimal-is-here")
Minimal().run()
"""


def _paint(argv: list[str], env: dict[str, str], needle: bytes) -> float:
    screen = Screen(argv, env)
    try:
        return screen.until(needle) * 1000
    finally:
        screen.close()


@bench("paint")
def paint() -> list[Figure]:
    command = str(Path(sys.executable).with_name("watchfloor"))
    with stocked(50) as (_, env):
        env = env | {"TERM": "xterm-256color", "COLORTERM": "truecolor"}
        subprocess.run([command, "supervisor", "start"], env=env, check=True, stdout=subprocess.DEVNULL)
        ours = []
        yard = []
        for i in range(11):
            a = _paint([sys.executable, "-c", MINIMAL], env, b"minimal-is-here")
            b = _paint([command], env, b"job-")
            if i:  # the first pair only warms the file cache
                yard.append(a)
                ours.append(b)
    r = ratio(ours, yard)
    return [
        Figure(
            "TUI first paint with a session's row, 50 sessions known",
            "ms",
            ours,
            "≤ 1.3×",
            r <= 1.3,
            yard,
            "minimal Textual app",
            r,
        )
    ]
