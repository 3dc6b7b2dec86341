"""``kill -9`` of the brain at random points of one session's work: nothing is done twice, nothing is left out.

A few points by default; ``WATCHFLOOR_KILLS=200`` plays as many as the figures name.
"""

from __future__ import annotations

import contextlib
import os
import random
from collections import Counter
from hashlib import sha256
from pathlib import Path

from harness.events import types as t
from tests.fleetlib import Fleet, fleet, kill, play, wait_for

KILLS = int(os.environ.get("WATCHFLOOR_KILLS", "6"))
TURNS = 3 * KILLS
GAP = (2, 9)
"""Records between the restart after one death and the next death."""


def tree(worktree: str) -> dict[str, str]:
    """Every file of a worktree by its path."""
    root = Path(worktree)
    files = (p for p in root.rglob("*") if p.is_file() and ".git" not in p.relative_to(root).parts)
    return {str(p.relative_to(root)): sha256(p.read_bytes()).hexdigest() for p in files}


def length(f: Fleet, sid: str) -> int:
    return len(f.records(sid))


def finished(f: Fleet, sid: str) -> bool:
    return any(isinstance(r.body, t.SessionEnded) for r in f.records(sid))


def test_a_brain_killed_at_random_points_leaves_the_tree_of_an_undisturbed_run() -> None:
    steps = [[("shell", {"script": f"echo {n} >> journal.txt; echo part {n} > n{n}.txt"})] for n in range(TURNS)]
    dice = random.Random(20261122)
    with fleet() as f:
        goal = play(*steps, "All is written.")
        check = (f"test $(wc -l < journal.txt) -eq {TURNS}",)
        calm = f.launch(goal, checks=check, name="calm")
        quiet = f.wait_state(calm, "done", "failed", "parked", "waiting", timeout=60 + 3 * TURNS)
        sid = f.launch(goal, checks=check, name="disturbed")
        deaths = 0
        while deaths < KILLS and not finished(f, sid):
            point = length(f, sid) + dice.randint(*GAP)
            wait_for("it goes on", lambda at=point: length(f, sid) >= at or finished(f, sid), 120)  # type: ignore[misc]
            pid = f.brain_pid(sid)
            with contextlib.suppress(ProcessLookupError):
                if pid and not finished(f, sid):
                    kill(pid)
                    deaths += 1
        row = f.wait_state(sid, "done", "failed", "parked", "waiting", timeout=120 + 3 * TURNS)
        assert (quiet["state"], row["state"]) == ("done", "done"), row
        assert row["verified"]
        records = f.records(sid)
        leases = sum(isinstance(r.body, t.LeaseGranted) for r in records)
        assert deaths >= KILLS // 2
        assert leases > deaths // 2, "it was taken up again and again"
        assert tree(row["worktree"]) == tree(quiet["worktree"])
        shells = {r.body.call_id for r in records if isinstance(r.body, t.ToolProposed) and r.body.tool == "shell"}
        starts = Counter(r.body.call_id for r in records if isinstance(r.body, t.ToolStarted))
        assert {starts[call] for call in shells} == {1}
        assert len(shells) == TURNS
        assert f.violations() == []
