"""What a session's processes hold after 50 turns and after 5,000 of ordinary work: write, read, print, edit, list."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

from tests.bench.fleet_costs import pss_mb
from tests.bench.table import Figure, bench
from tests.fleetlib import fleet, wait_for

EARLY = 50
LATE = 5000
LOOKS = 15
WRITES = 5
"""Every so many turns one writes a file, which says where the session is."""
MOST = 1.2
PATIENCE_S = 3600


@bench("growth")
def growth() -> list[Figure]:
    begun = time.monotonic()
    with fleet(config='[caps]\nday_usd = "10000"\nsession_usd = "10000"\n') as f:
        sid = f.launch(f"long: {LATE + WRITES * LOOKS}")
        f.wait_event(sid, "tool.started")
        worktree = Path(f.row(sid)["worktree"])
        pids = {"keeper": f.keeper_pid(sid), "brain": f.brain_pid(sid)}
        held: dict[str, list[float]] = {name: [] for name in pids}
        for at in (EARLY, LATE):
            # one look meets a call or not, and a page that a call's process shares counts less: the median of some
            looks: dict[str, list[float]] = {name: [] for name in pids}
            for turn in range(at, at + WRITES * LOOKS, WRITES):
                wait_for(f"turn {turn}", (worktree / f"n{turn}.txt").exists, PATIENCE_S)
                for name, pid in pids.items():
                    looks[name].append(pss_mb(pid))
            for name, seen in looks.items():
                held[name].append(statistics.median(seen))
        if pids["brain"] != f.brain_pid(sid):
            raise RuntimeError("another brain went on")
    took = f"{LATE:,} turns in {time.monotonic() - begun:.0f} s"
    return [
        Figure(
            f"memory (PSS) of a {name} after {LATE:,} turns",
            "MB",
            [late],
            f"≤ {MOST}×",
            late <= MOST * early,
            [early],
            f"after {EARLY}",
            late / early,
            took,
        )
        for name, (early, late) in held.items()
    ]
