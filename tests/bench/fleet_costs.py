"""What 32 sessions cost: memory of each process, processor time while all wait, and taking them up again after ``kill
-9``.
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from harness.protocol.client import Client, SupervisorError, Unreachable
from harness.protocol.connection.transport import UnixSocket
from tests.bench.screen import Screen
from tests.bench.table import Figure, bench
from tests.fleetlib import COMMAND, Fleet, fleet, kill, play, wait_for

SESSIONS = 32
WINDOW_S = 20


def pss_mb(pid: int) -> float:
    """Proportional set size in MB (10^6 bytes)."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    return int(next(ln.split()[1] for ln in text.splitlines() if ln.startswith("Pss:"))) * 1024 / 1e6


def cpu_s(pid: int) -> float:
    """User and system time of one process in seconds; 0 when it is gone."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def crowd(goal: str) -> Iterator[tuple[Fleet, list[str]]]:
    """A fleet of 32 sessions with one goal."""
    with fleet(config='[caps]\nday_usd = "1000"\n') as f:
        repo = f.repository()
        yield f, [f.launch(goal, repo=repo, name=f"job-{i:02d}") for i in range(SESSIONS)]


@contextmanager
def looking(f: Fleet) -> Iterator[Screen]:
    """The floor on a 120×40 terminal."""
    screen = Screen([COMMAND], f.env | {"TERM": "xterm-256color", "COLORTERM": "truecolor"})
    try:
        screen.until(b"job-")
        screen.quiet(1.0)
        yield screen
    finally:
        screen.close()


WAITING = play([("exec", {"argv": ["true"], "access": "unsandboxed"})], "Done.")
BUSY = play([("exec", {"argv": ["sleep", "600"], "timeout_s": 600})], "Done.")


@bench("memory")
def memory() -> list[Figure]:
    with crowd(BUSY) as (f, sids):
        for sid in sids:
            f.wait_event(sid, "tool.started", 180)
        with looking(f) as screen:
            keepers = [pss_mb(f.keeper_pid(sid)) for sid in sids]
            brains = [pss_mb(f.brain_pid(sid)) for sid in sids]
            supervisor = [pss_mb(f.supervisor_pid())]
            tui = [pss_mb(screen.pid)]
    vendor = {
        "keeper": (keepers, 5.0, 66.0),
        "brain": (brains, 25.0, 195.0),
        "supervisor": (supervisor, 60.0, 125.0),
        "TUI": (tui, 60.0, 168.0),
    }
    return [
        Figure(
            f"memory (PSS) of {'each ' if len(v) > 1 else 'the '}{name}, 32 sessions",
            "MB",
            v,
            f"≤ {limit:.0f} MB",
            max(v) <= limit,
            [yard],
            "a vendor's",
            statistics.median(v) / yard,
        )
        for name, (v, limit, yard) in vendor.items()
    ]


@bench("idle")
def idle() -> list[Figure]:
    with crowd(WAITING) as (f, sids):
        for sid in sids:
            f.approval(sid, 180)
            f.wait_event(sid, "session.parked", 60)
        with looking(f) as screen:
            samples = []
            for _ in range(3):
                pids = [*(p for p, _ in f.processes()), screen.pid]
                before = sum(map(cpu_s, pids))
                end = time.monotonic() + WINDOW_S
                while time.monotonic() < end:
                    screen.pump(0.5)
                samples.append((sum(map(cpu_s, pids)) - before) / WINDOW_S * 100)
    return [
        Figure(
            "idle CPU, 32 parked sessions, everything running (floor open)",
            "% of a core",
            samples,
            "≤ 1 %",
            statistics.median(samples) <= 1,
        )
    ]


def take_up(f: Fleet, left: dict[str, str]) -> bool:
    """Let each session write one event through its keeper; a session counts when its log took it."""
    try:
        with Client(UnixSocket(f.folders.supervisor_socket), timeout=2) as client:
            for sid, approval in list(left.items()):
                client.call("defer", approval_id=approval)
                del left[sid]
    except (Unreachable, SupervisorError):
        return False
    return True


@bench("readopt")
def readopt() -> list[Figure]:
    with crowd(WAITING) as (f, sids):
        for sid in sids:
            f.approval(sid, 180)
            f.wait_event(sid, "session.parked", 60)

        samples = []
        for _ in range(5):
            waiting = {sid: f.approval(sid)["approval_id"] for sid in sids}
            pid = f.supervisor_pid()
            start = time.perf_counter()
            kill(pid)
            wait_for("all sessions taken up again", lambda left=waiting: take_up(f, left), 60)
            samples.append(time.perf_counter() - start)
    return [
        Figure("`kill -9` of the supervisor → 32 sessions taken up again", "s", samples, "≤ 2 s", max(samples) <= 2)
    ]
