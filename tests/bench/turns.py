"""What a turn costs: one shell call a turn, again and again, and the processor time of all that is ours beside it."""

from __future__ import annotations

import os
import time
from pathlib import Path

from tests.bench.table import Figure, bench
from tests.fleetlib import Fleet, fleet, play, wait_for

TURNS = 200
WARM_UP = 20
SPARE = 20
"""Turns behind the last that is measured, so that all processes still live when they are looked at."""
_TICK = os.sysconf("SC_CLK_TCK")


def with_children_s(pid: int) -> float:
    """User and system time of a process and of the children it has waited for, in seconds."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return sum(int(value) for value in fields[11:15]) / _TICK


def spent(f: Fleet, sid: str) -> dict[str, float]:
    """Seconds so far by part; the vault is a child of its keeper that lives on."""
    parts = {"keeper and calls": f.keeper_pid(sid), "brain": f.brain_pid(sid), "supervisor": f.supervisor_pid()}
    found = {name: with_children_s(pid) for name, pid in parts.items()}
    below = Path(f"/proc/{parts['keeper and calls']}/task/{parts['keeper and calls']}/children").read_text().split()
    found["vault"] = sum(with_children_s(int(pid)) for pid in below if Path(f"/proc/{pid}").exists())
    return found


def steps() -> list[list[tuple[str, dict[str, object]]]]:
    """The calls of each turn; the first and the last that are measured leave a mark."""
    marks = {WARM_UP: "touch begun", WARM_UP + TURNS: "touch ended"}
    return [[("shell", {"script": marks.get(n, f"echo {n} > out.txt")})] for n in range(WARM_UP + TURNS + SPARE)]


@bench("turn")
def turn() -> list[Figure]:
    with fleet(config='[caps]\nday_usd = "1000"\nsession_usd = "1000"\n') as f:
        sid = f.launch(play(*steps(), "Done."))
        f.wait_event(sid, "tool.started")
        worktree = Path(f.row(sid)["worktree"])
        wait_for("the first mark", (worktree / "begun").exists, 120)
        before = spent(f, sid)
        begun = time.monotonic()
        wait_for("the last mark", (worktree / "ended").exists, 600)
        ended = time.monotonic()
        after = spent(f, sid)
    ours = {name: (after[name] - before[name]) / TURNS * 1e3 for name in before}
    total = sum(ours.values())
    note = ", ".join(f"{name} {ms:.1f}" for name, ms in ours.items())
    wall = (ended - begun) / TURNS * 1e3
    return [
        Figure(f"CPU of all our processes per tool turn ({note} ms)", "ms", [total], "≤ 40 ms", total <= 40),
        Figure("wall per tool turn, with the time of the endpoint", "ms", [wall], "–", None),
    ]
