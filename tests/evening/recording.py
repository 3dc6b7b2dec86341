"""``make recording REPO=…``: the evening played on a repository of yours, kept as an asciinema cast of every byte and
as a GIF of the moments that matter.

REPO is a checkout of a small Python library with ``src/cachetools`` and ``tests``, such as cachetools itself; it is
copied first. Needs tmux, asciinema, Chromium, ImageMagick and the fonts of ``make screenshots``.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from tests.evening import story
from tests.evening.terminal import Terminal
from tests.fleetlib import COMMAND, fleet
from tests.screenshots import OUT, chromium_here, to_png

SIZE = (120, 36)
MOMENT_S = 3.5
"""How long the GIF shows each moment."""
NEEDED = ("tmux", "asciinema", "convert")
_MOST_IDLE_S = 2


def svg_of(caption: str, screen: str) -> str:
    """One moment as a picture: the screen as its terminal coloured it, and what it shows as the window's title."""
    console = Console(record=True, width=SIZE[0], file=StringIO(), force_terminal=True, color_system="truecolor")
    lines = screen.rstrip("\n").split("\n")
    lines += [""] * (SIZE[1] - len(lines))  # pictures of one size: the terminal leaves out what is blank at its end
    for line in lines:
        console.print(Text.from_ansi(line), no_wrap=True, crop=True, overflow="crop")
    return console.export_svg(title=caption, theme=MONOKAI)


@contextmanager
def recorded(it: Terminal, cast: Path) -> Iterator[None]:
    """What a client of this terminal is sent, kept as a cast."""
    attach = f"tmux -S {it.socket} attach -r"
    columns, rows = map(str, SIZE)
    options = ("rec", "--quiet", "--overwrite", "--cols", columns, "--rows", rows, "-i", str(_MOST_IDLE_S))
    process = subprocess.Popen(
        ["asciinema", *options, "-c", attach, str(cast)],
        stdin=subprocess.DEVNULL,
        env=os.environ | {"TERM": "xterm-256color"},
    )
    try:
        it.attached()
        yield
    finally:
        it.close()
        process.wait(timeout=20)


def to_gif(chromium: str, moments: list[tuple[str, str]], target: Path) -> None:
    """All moments, one after another, for ever."""
    with tempfile.TemporaryDirectory() as folder:
        frames = [Path(folder) / f"{n:02}.png" for n in range(len(moments))]
        for frame, (caption, screen) in zip(frames, moments, strict=True):
            to_png(chromium, svg_of(caption, screen), frame)
        delay = str(int(MOMENT_S * 100))
        made = [
            "-delay",
            delay,
            "-loop",
            "0",
            *map(str, frames),
            "-resize",
            "1000x",
            "-colors",
            "64",
            "-layers",
            "optimize",
        ]
        subprocess.run(["convert", *made, str(target)], check=True, timeout=300)


def _programs(root: Path) -> Path:
    """A folder with the one command that the story types, so that a card shows no folders of who records it."""
    folder = root / "bin"
    folder.mkdir()
    (folder / "watchfloor").symlink_to(COMMAND)
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description="Record the evening.")
    parser.add_argument("repo", type=Path, help="the checkout to copy and play it on")
    repo: Path = parser.parse_args().repo
    missing = [tool for tool in NEEDED if shutil.which(tool) is None]
    if missing or (chromium := chromium_here()) is None:
        print(
            f"make recording needs {', '.join(missing) or 'Chromium'}; on Debian:"
            " tmux asciinema imagemagick chromium fonts-firacode"
        )
        return 1
    if not (repo / "src" / "cachetools").is_dir():
        print(f"{repo} has no folder src/cachetools; the five agents work on that library")
        return 2
    moments: list[tuple[str, str]] = []
    with fleet(config=story.CONFIG, simulator_args=("--speed", "0.6", "--scenarios", str(story.SCENARIOS))) as f:
        copy = Path(shutil.copytree(repo, f.root / "cachetools"))
        story.with_origin(copy)
        env = f.env | {
            "PATH": f"{_programs(f.root)}:/usr/local/bin:/usr/bin:/bin",
            "HOME": str(f.root),
            "COLORTERM": "truecolor",
        }
        it = Terminal(f.root, SIZE, env, copy, lambda caption, screen: moments.append((caption, screen)))
        with recorded(it, OUT / "evening.cast"):
            story.play(it)
    to_gif(chromium, moments, OUT / "evening.gif")
    print(OUT / "evening.cast", OUT / "evening.gif")
    return 0


if __name__ == "__main__":
    sys.exit(main())
