"""Thirty sessions at full speed: how many turns a second they make in all, and whether each gets its share.

The yardstick is what this machine could do at most: its cores, divided by the processor time that one turn of one
session alone takes, of all our processes and of the simulated model together, which shares the machine.
"""

from __future__ import annotations

import os
import statistics
import time
from contextlib import suppress
from pathlib import Path

from tests.bench.table import Figure, bench
from tests.bench.turns import with_children_s
from tests.fleetlib import Fleet, fleet, wait_for

SESSIONS = 30
WARM_UP = 3
WINDOW_S = 30.0
ALONE = 100
PATIENCE_S = 600
_QUIET_CORES = 0.1
_CONFIG = '[caps]\nday_usd = "10000"\nsession_usd = "1000"\n'


def cpu_s(f: Fleet) -> float:
    """Processor time so far of everything that belongs to the fleet, the model included."""
    total = 0.0
    for pid in (f.simulator.pid, *(pid for pid, _ in f.processes())):
        with suppress(OSError):
            total += with_children_s(pid)
    return total


def others_s(f: Fleet) -> float:
    """Processor time so far of everything else on this machine."""
    user, nice, system, _, _, irq, softirq, steal, *_ = Path("/proc/stat").read_text().split("\n")[0].split()[1:]
    return sum(map(int, (user, nice, system, irq, softirq, steal))) / os.sysconf("SC_CLK_TCK") - cpu_s(f)


def turn(worktree: Path) -> int:
    """The turn that a session is at; -1 before the first."""

    def told() -> str:
        try:
            return (worktree / "turn").read_text()  # empty for as long as it is being written
        except FileNotFoundError:
            return "-1"

    return int(wait_for("the number of a turn", told))


def alone() -> float:
    """Processor seconds of one turn."""
    with fleet(config=_CONFIG) as f:
        sid = f.launch(f"commands: {WARM_UP + ALONE + 2} by shell")
        f.wait_event(sid, "tool.started")
        worktree = Path(f.row(sid)["worktree"])
        wait_for("the warm-up", lambda: turn(worktree) >= WARM_UP, PATIENCE_S)
        begun = cpu_s(f)
        first = turn(worktree)
        wait_for("the last turn", lambda: turn(worktree) >= WARM_UP + ALONE, PATIENCE_S)
        return (cpu_s(f) - begun) / (turn(worktree) - first)


def together() -> tuple[list[float], float, float]:
    """(Turns a second of each session, processor seconds of a turn, cores that others took) while all of them run."""
    with fleet(config=_CONFIG) as f:
        repo = f.repository()
        sids = [f.launch("commands: 9999 by shell", repo=repo, name=f"job-{i:02d}") for i in range(SESSIONS)]
        worktrees = [Path(f.row(sid)["worktree"]) for sid in sids]
        wait_for("every warm-up", lambda: min(map(turn, worktrees)) >= WARM_UP, PATIENCE_S)
        before = [turn(w) for w in worktrees]
        begun = time.monotonic()
        used = cpu_s(f)
        others = others_s(f)
        wait_for("the end of the window", lambda: time.monotonic() - begun >= WINDOW_S, 2 * WINDOW_S)
        after = [turn(w) for w in worktrees]
        used = cpu_s(f) - used
        others = others_s(f) - others
        took = time.monotonic() - begun
    made = [late - early for early, late in zip(before, after, strict=True)]
    return [count / took for count in made], used / sum(made), others / took


@bench("thirty")
def thirty() -> list[Figure]:
    one = alone()
    limit = (os.cpu_count() or 1) / one
    speeds, each, others = together()
    share = sum(speeds) / limit
    fairness = min(speeds) / statistics.mean(speeds)
    note = f"a turn takes {one * 1e3:.0f} ms of processor alone, {each * 1e3:.0f} ms among {SESSIONS}"
    if others > _QUIET_CORES:
        note += f"; others took {others:.1f} cores meanwhile"
    return [
        Figure(
            f"turns a second of {SESSIONS} sessions in all",
            "/s",
            [sum(speeds)],
            "≥ 0.9×",
            share >= 0.9,
            [limit],
            "cores ÷ processor time of a turn alone",
            share,
            note,
        ),
        Figure(
            "the slowest of them",
            "/s",
            [min(speeds)],
            "≥ 0.5×",
            fairness >= 0.5,
            [statistics.mean(speeds)],
            "the mean of all",
            fairness,
        ),
    ]
