"""``watchfloor ls --json`` with 1,000 sessions against ``python -c pass``."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

from tests.bench.stock import stocked
from tests.bench.table import Figure, bench


def _time(argv: list[str], env: dict[str, str]) -> float:
    start = time.perf_counter()
    subprocess.run(argv, env=env, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - start) * 1000


@bench("ls")
def ls() -> list[Figure]:
    command = str(Path(sys.executable).with_name("watchfloor"))
    with stocked(1000) as (_, env):
        subprocess.run([command, "supervisor", "start"], env=env, check=True, stdout=subprocess.DEVNULL)
        listed = subprocess.run([command, "ls", "--json"], env=env, check=True, capture_output=True).stdout.count(b"\n")
        if listed != 1000:
            raise RuntimeError(f"ls listed {listed} of 1,000 sessions")
        ours = []
        yard = []
        for _ in range(15):
            yard.append(_time([sys.executable, "-c", "pass"], env))
            ours.append(_time([command, "ls", "--json"], env))
    extra = statistics.median(ours) - statistics.median(yard)
    return [
        Figure(
            "`watchfloor ls --json`, 1,000 sessions",
            "ms",
            ours,
            "≤ +150 ms",
            extra <= 150,
            yard,
            "`python -c pass`",
            statistics.median(ours) / statistics.median(yard),
            f"+{extra:.0f} ms",
        )
    ]
