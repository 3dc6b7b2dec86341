"""What one session costs as it grows: memory of its processes and processor time of a turn, early and after hundreds of
turns of ordinary work.
"""

from __future__ import annotations

import itertools
import time
from pathlib import Path

from tests.bench.fleet_costs import cpu_s, pss_mb
from tests.bench.table import Figure, bench
from tests.fleetlib import Fleet, fleet, wait_for

TURNS = 500
STEP = 50
PATIENCE_S = 600


def work(f: Fleet) -> dict[str, list[tuple[float, float]]]:
    """Memory in MB, and processor seconds so far, of each process of one session, after every `STEP` turns."""
    sid = f.launch(f"long: {TURNS + 1}")
    f.wait_event(sid, "tool.started")
    worktree = Path(f.row(sid)["worktree"])
    pids = {"keeper": f.keeper_pid(sid), "brain": f.brain_pid(sid)}
    seen: dict[str, list[tuple[float, float]]] = {name: [] for name in pids}
    for turn in range(STEP, TURNS + 1, STEP):
        wait_for(f"turn {turn}", (worktree / f"n{turn}.txt").exists, PATIENCE_S)
        for name, pid in pids.items():
            seen[name].append((pss_mb(pid), cpu_s(pid)))
    assert pids["brain"] == f.brain_pid(sid), "one brain did all of it"
    return seen


@bench("long_session")
def long_session() -> list[Figure]:
    begun = time.monotonic()
    with fleet(config='[caps]\nday_usd = "1000"\nsession_usd = "1000"\n') as f:
        seen = work(f)
    took = f"{TURNS} turns in {time.monotonic() - begun:.0f} s"
    out = []
    for name, most in (("keeper", 2.0), ("brain", 10.0)):
        memory = [m for m, _ in seen[name]]
        grown = memory[-1] - memory[0]
        said = f"{memory[0]:.1f} → {memory[-1]:.1f} MB; {took}"
        out.append(
            Figure(
                f"memory (PSS) that a {name} gains from turn {STEP} to {TURNS}",
                "MB",
                [grown],
                f"≤ {most:.0f} MB",
                grown <= most,
                note=said,
            )
        )
    for name, samples in seen.items():
        spent = [(b - a) * 1000 / STEP for (_, a), (_, b) in itertools.pairwise(samples)]
        early = spent[:1]
        late = spent[-1:]
        out.append(
            Figure(
                f"CPU of a {name} in a turn, turns {TURNS - STEP} to {TURNS}",
                "ms",
                late,
                "≤ 2×",
                late[0] <= 2 * early[0],
                early,
                f"turns {STEP} to {2 * STEP}",
                late[0] / early[0] if early[0] else None,
            )
        )
    return out
