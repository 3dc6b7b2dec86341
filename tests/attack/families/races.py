"""Links swapped under the harness's file tools and under calls as they start, by a process of the host that never
stops.
"""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.attack.ground import Ground
from tests.attack.model import Attempt, Escape, Outside
from tests.process.keeperlib import Refused

SWAPPER = """
import ctypes, sys
libc = ctypes.CDLL(None)
print("on", flush=True)
while libc.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2) == 0:
    pass
"""
INPUTS: dict[str, dict[str, str]] = {
    "read_file": {},
    "write_file": {"content": "from inside\n"},
    "edit_file": {"old": "harmless", "new": "edited"},
    "list_files": {},
    "search": {"pattern": "canary-"},
}
PLACES = ("the file", "its folder", "the folder above", "a link and a link")


@contextmanager
def swapping(one: Path, other: Path) -> Iterator[None]:
    """Exchange two names for as long as the block runs."""
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", SWAPPER, str(one), str(other)], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        process.stdout.readline()
        yield
        if process.poll() is not None:
            raise RuntimeError("the swapper ended by itself")
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def _swap(tool: str, place: str, target: int, times: int) -> Outside:
    def attempt(ground: Ground) -> None:
        root = ground.tree.root
        goal = ground.targets[target]
        name = goal.name
        folder = root / "spot" / "inner"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("harmless\n")
        if place == "the file":
            one = folder / name
            lure = goal
        elif place == "its folder":
            one = folder
            lure = goal.parent
        elif place == "the folder above":
            one = root / "spot"
            lure = goal.parent.parent
            name = f"{goal.parent.name}/{name}"
            (root / "spot" / name).parent.mkdir(exist_ok=True)
            (root / "spot" / name).write_text("harmless\n")
        else:
            one = folder / "way"
            lure = goal.parent
            one.symlink_to("../inner")
        other = root / "other"
        other.symlink_to(lure)
        path = {
            "the file": f"spot/inner/{name}",
            "its folder": f"spot/inner/{name}",
            "the folder above": f"spot/{name}",
        }.get(place, f"spot/inner/way/{name}")
        given = {"path": path if tool not in ("list_files", "search") else str(Path(path).parent), **INPUTS[tool]}
        with swapping(one, other):
            for _ in range(times):
                action = ground.action(tool, given)
                if action["effects"] or action.get("refused"):
                    continue
                call = ground.allow(action)
                try:
                    ground.link.call("execute", call_id=call)
                except Refused:
                    continue
                ended = ground.ended(call)
                if found := ground.watch.secrets(f"the output of {tool}", ground.output(ended)):
                    raise Escape("; ".join(found))

    return Outside(f"{tool} while {place} is swapped for target {target}", attempt)


def attempts(ground: Ground, dice: random.Random | None) -> Iterator[Attempt]:
    readable = len(ground.targets) - 1
    if dice is None:
        for number, tool in enumerate(INPUTS):
            yield _swap(tool, PLACES[number % len(PLACES)], number % readable, 6)
        return
    yield _swap(dice.choice(sorted(INPUTS)), dice.choice(PLACES), dice.randrange(readable), 12)
