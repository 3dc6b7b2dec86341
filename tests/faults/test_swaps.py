"""What was shown is what runs: more than a thousand swaps between asking and running, at a real keeper, vault and
runner.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import stat
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from harness.domain.actions.action import action_hash, from_wire
from harness.executor import preconditions
from harness.workspace.private_git import private_gitdir
from harness.workspace.tree import worktrees
from tests.faults.swaplib import CHANGES, GIT, HARMLESS, PLACES, Swap, runs_in, swap
from tests.faults.swapworld import World
from tests.fleetlib import make_repository
from tests.process.keeperlib import SID, Keepers, action, judged, keepers, proposed

SEEDS = 4
EACH = 260
RUNS = 12


@dataclass
class Bench:
    """One keeper and the worktree of its session; calls are asked, decided and executed as the supervisor does it."""

    root: Path
    fleet: Keepers
    tree: private_gitdir.Worktree
    beside: Path
    number: int = 0
    closing: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.fleet.spawn()
        self.link = self.fleet.supervisor()
        self.link.call("subscribe", after=0)
        self.binds = [list(bind) for bind in private_gitdir.binds(self.tree)]

    def shown(self, argv: tuple[str, ...], cwd: str = "") -> dict[str, Any]:
        """The action as a person is shown it, bound to the world as it is now."""
        self.number += 1
        call = f"c0.{self.number}"
        proof = self.root / f"ran{self.number}"
        snapshot = self.link.call("snapshot", label=f"shown for {call}", full=True)["snapshot"]
        root = str(self.tree.root)
        env = {"PATH": "/usr/bin:/bin", "HOME": "/tmp", "PROOF": str(proof)}
        sandbox = {
            "worktree": root,
            "read": [],
            "write": [root],
            "binds": self.binds,
            "network": True,
            "sandboxed": False,
        }
        made = action(self.tree.root, call, list(argv), env=env, sandbox=sandbox, cwd=str(self.tree.root / cwd))
        keys: dict[str, Any] = {"cwd": {}, "program": {}, "head": "", "worktree": {}}
        return {**made, "pre": {**preconditions.observe(from_wire({**made, "pre": keys})), "snapshot": snapshot}}

    def execute(self, what: dict[str, Any]) -> list[str] | None:
        """Ask, decide, execute: the differences when it was stale, None when it ran to its end."""
        call = str(what["call"])
        digest = action_hash(what)
        asked = {
            "approval_id": f"a{self.number:07d}",
            "kind": "tool",
            "title": "t",
            "options": ["allow"],
            "call_id": call,
            "action_hash": digest,
        }
        decision = {
            "approval_id": asked["approval_id"],
            "decision_id": f"d{self.number}",
            "decision": "allow",
            "call_id": call,
            "action_hash": digest,
        }
        self.link.append(
            *self.closing,
            proposed(call),
            judged(what, "ask"),
            ("approval.requested", asked),
            ("approval.decided", decision),
        )
        self.closing.clear()
        return self.again(call)

    def again(self, call: str) -> list[str] | None:
        """Execute a decided call (once more)."""
        reply = self.link.call("execute", call_id=call)
        if reply["stale"]:
            self.closing = [("tool.ended", {"call_id": call, "status": "refused", "preview": "it changed"})]
            return list(reply["stale"])
        assert reply["started"] is True
        self.closing = []
        self._ended(call)
        return None

    def _ended(self, call: str) -> None:
        while True:
            for push in self.link.pushes:
                for line in push.get("lines", []):
                    if '"type":"tool.ended"' in line and json.loads(line)["data"]["call_id"] == call:
                        self.link.pushes.clear()
                        return
            assert not self.link.ended
            self.link.pushes.clear()
            self.link.read_some()

    def ran(self, what: dict[str, Any]) -> bool:
        return Path(what["env"]["PROOF"]).exists()

    def clear_beside(self) -> None:
        with os.scandir(self.beside) as entries:
            for entry in entries:
                shutil.rmtree(entry.path) if entry.is_dir(follow_symlinks=False) else os.unlink(entry.path)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with keepers(tmp_path) as fleet:
        repo = make_repository(tmp_path / "repo")
        folder = fleet.folder(SID)
        tree = worktrees.create(
            repo, tmp_path / "state" / "worktrees" / SID, f"watchfloor/{SID}", folder.git / "private"
        )
        (tmp_path / "beside").mkdir()
        yield Bench(tmp_path, fleet, tree, tmp_path / "beside")


def identity(path: str) -> tuple[int, ...]:
    """Which folder stands there; a link is none."""
    try:
        info = os.lstat(path)
    except OSError:
        return ()
    return (info.st_dev, info.st_ino) if stat.S_ISDIR(info.st_mode) else ()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_swap_runs_what_was_not_shown(bench: Bench, seed: int) -> None:
    dice = random.Random(seed)
    world = World(bench.tree.root, bench.tree.private, bench.beside)
    done: Counter[str] = Counter()
    outcomes: Counter[bool] = Counter()
    for _ in range(EACH):
        world.mend()
        argv, cwd = runs_in(dice)
        act = swap(world, dice)
        what = bench.shown(argv, cwd)
        folder = identity(what["cwd"])
        made: Swap = act()
        named = (*made.named, "the folder it runs in") if identity(what["cwd"]) != folder else made.named
        stale = bench.execute(what)
        told = f"seed {seed}, call {bench.number}, {made}, {argv} in {cwd or '.'}: {stale}"
        assert bool(stale) == bool(named), told
        assert bench.ran(what) != bool(named), told
        assert not stale or any(name in sentence for name in named for sentence in stale), told
        done[made.kind] += 1
        outcomes[stale is None] += 1
        if made.kind in GIT:
            world.mend_git()
        bench.clear_beside()
    assert sum(done.values()) == EACH
    assert SEEDS * EACH >= 1000
    assert outcomes[True] >= EACH // 20
    assert outcomes[False] >= EACH // 2
    assert done.keys() >= CHANGES.keys() | HARMLESS.keys() | PLACES.keys() | GIT.keys()


RACES: dict[str, tuple[str, tuple[str, ...], str]] = {
    "the program": ("run", ("./run",), ""),
    "a link to a program outside": ("tool", ("./tool",), ""),
    "a link to a program inside": ("tool", ("./tool",), ""),
    "the folder it runs in": ("place/a", ("/bin/sh", "-c", 'stat -c %i . >> "$PROOF"'), "place/a"),
}
"""What is exchanged all the time: its name, the command that is asked, and the folder that it runs in."""
EXCHANGE = """
import ctypes, sys
libc = ctypes.CDLL(None)
print("on", flush=True)
while libc.renameat2(-100, sys.argv[1].encode(), -100, sys.argv[2].encode(), 2) == 0: pass
"""


@pytest.mark.parametrize("race", sorted(RACES))
def test_what_is_exchanged_all_the_time_never_runs(bench: Bench, race: str) -> None:
    World(bench.tree.root, bench.tree.private, bench.beside)
    name, argv, cwd = RACES[race]
    place = bench.tree.root / name
    bad = bench.root / "bad"
    other = bench.beside / "other"
    good = bench.beside / "good"
    for path, mark in ((good, '"$PROOF"'), (bench.beside / "evil", str(bad)), (bench.tree.root / "evil", str(bad))):
        path.write_text(f"#!/bin/sh\ntouch {mark}\n")
        path.chmod(0o755)
    if race == "the program":
        (bench.tree.root / "evil").rename(other)
    elif race == "the folder it runs in":
        other.mkdir()
    else:
        place.unlink()
        place.symlink_to(good if race == "a link to a program outside" else "run")
        other.symlink_to(bench.beside / "evil" if race == "a link to a program outside" else "evil")
    what = bench.shown(argv, cwd)
    number = os.stat(place).st_ino
    swapper = subprocess.Popen([sys.executable, "-c", EXCHANGE, str(place), str(other)], stdout=subprocess.PIPE)
    try:
        assert swapper.stdout is not None
        assert swapper.stdout.readline() == b"on\n"
        ran = 0
        tried = 0
        while ran < RUNS and tried < 40 * RUNS:
            ran += bench.execute(what) is None
            assert not bad.exists()
            tried += 1
            bench.number += 1
            what = {**what, "call": f"c0.{bench.number}"}
        assert swapper.poll() is None
        assert ran == RUNS
    finally:
        swapper.kill()
        swapper.communicate()
    assert not bad.exists()
    if race == "the folder it runs in":
        assert set(Path(what["env"]["PROOF"]).read_text().split()) == {str(number)}
