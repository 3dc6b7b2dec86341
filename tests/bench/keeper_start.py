"""How long a keeper takes to start on a log of 1 GB, and how long all of it takes to be read, as at a first start."""

import tempfile
import time
from pathlib import Path

from harness.eventlog.writer import LogWriter
from harness.keeper.log import checkpoint
from tests.bench.table import Figure, bench
from tests.process.keeperlib import SID, Keepers, keepers, note, wait_until

BYTES = 1_000_000_000
TEXT = 800
STARTS = 5


def written(fleet: Keepers) -> None:
    """A log of ordinary records, made by the real writer."""
    log = LogWriter.open(fleet.folder().log, SID)
    for number in range(BYTES // (TEXT + 200)):
        kind, data = note(f"{number} ".ljust(TEXT, "x"))
        log.append(kind, data, actor="brain")
        if number % 64 == 63:
            log.commit(sync=False)
    log.commit(sync=True)
    log.close()


def grown(fleet: Keepers) -> None:
    """Let the log grow by nearly as much as may follow a checkpoint."""
    link = fleet.supervisor()
    for _ in range(checkpoint.EVERY_BYTES // (TEXT + 200) // 60):
        link.append(*(note("x" * TEXT) for _ in range(60)), cls="B")
    link.close()


def started(fleet: Keepers) -> tuple[float, int]:
    """(Seconds from the request to a keeper that listens, its pid)."""
    begun = time.perf_counter()
    pid = int(fleet.spawn()["pid"])
    return time.perf_counter() - begun, pid


def checked(pid: int) -> bool:
    """True when the child that verifies the rest is gone."""
    return not Path(f"/proc/{pid}/task/{pid}/children").read_text().split()


@bench("keeper_start")
def keeper_start() -> list[Figure]:
    """Every start but the first is after ``kill -9`` and reads nearly all that a checkpoint leaves; the log is in the
    page cache each time.
    """
    with tempfile.TemporaryDirectory(prefix="wf-bench-") as root, keepers(Path(root)) as fleet:
        fleet.folder().root.mkdir(parents=True, mode=0o700)
        written(fleet)
        whole, pid = started(fleet)
        grown(fleet)
        fleet.kill(pid)
        took = []
        for _ in range(STARTS):
            seconds, pid = started(fleet)
            took.append(seconds)
            fleet.kill(pid)
        _, pid = started(fleet)
        begun = time.perf_counter()
        wait_until("the rest is verified", lambda: checked(pid), 600)
        behind = time.perf_counter() - begun
        fleet.kill(pid)
    return [
        Figure(
            "keeper start on a 1 GB log, after `kill -9`",
            "s",
            took,
            "≤ 0.3 s",
            max(took) <= 0.3,
            [whole],
            "the log read whole",
            sorted(took)[STARTS // 2] / whole,
            note=f"the rest verified beside it in {behind:.0f} s",
        )
    ]
