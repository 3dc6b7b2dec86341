"""What a session's processes hold after 50 turns and after 2,000, each with one small shell command."""

from __future__ import annotations

import time
from pathlib import Path

from tests.bench.fleet_costs import pss_mb
from tests.bench.table import Figure, bench
from tests.bench.thirty import turn
from tests.fleetlib import fleet, wait_for

EARLY, LATE = 50, 2000
PATIENCE_S = 1800


@bench("growth")
def growth() -> list[Figure]:
    begun = time.monotonic()
    with fleet(config='[caps]\nday_usd = "10000"\nsession_usd = "10000"\n') as f:
        sid = f.launch(f"commands: {LATE + 100} by shell")
        f.wait_event(sid, "tool.started")
        worktree, pids = Path(f.row(sid)["worktree"]), {"keeper": f.keeper_pid(sid), "brain": f.brain_pid(sid)}
        held: dict[str, list[float]] = {name: [] for name in pids}
        for at in (EARLY, LATE):
            wait_for(f"turn {at}", lambda at=at: turn(worktree) >= at, PATIENCE_S)
            for name, pid in pids.items():
                held[name].append(pss_mb(pid))
        if pids["brain"] != f.brain_pid(sid):
            raise RuntimeError("another brain went on")
    took = f"{LATE:,} turns in {time.monotonic() - begun:.0f} s"
    return [
        Figure(
            f"memory (PSS) of a {name} after {LATE:,} turns",
            "MB",
            [late],
            "≤ 1.3×",
            late <= 1.3 * early,
            [early],
            f"after {EARLY}",
            late / early,
            took,
        )
        for name, (early, late) in held.items()
    ]
