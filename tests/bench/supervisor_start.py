"""How long a supervisor takes to serve 1,000 ended sessions: from its process to the answer that lists them all."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
import time
from pathlib import Path

from harness.protocol.client import Client, Unreachable
from harness.protocol.connection.transport import UnixSocket
from harness.protocol.paths import Folders
from tests.bench.stock import stocked, stop
from tests.bench.table import Figure, bench
from tests.process.keeperlib import wait_until

SESSIONS = 1000
STARTS = 5


def served(folders: Folders, env: dict[str, str]) -> float:
    """Seconds from the command that starts a supervisor to its list of every session."""
    command = str(Path(sys.executable).with_name("watchfloor"))
    begun = time.perf_counter()
    starting = subprocess.Popen([command, "supervisor", "start"], env=env, stdout=subprocess.DEVNULL)
    wait_until("all are listed", lambda: listed(folders) == SESSIONS)
    took = time.perf_counter() - begun
    if starting.wait():
        raise RuntimeError("the supervisor did not start")
    return took


def listed(folders: Folders) -> int:
    """How many sessions a supervisor lists; -1 while none answers."""
    try:
        with Client(UnixSocket(folders.supervisor_socket), timeout=20) as client:
            return len(client.call("sessions")["rows"])
    except Unreachable:
        return -1


def indexed(folders: Folders) -> bool:
    """True when the index holds every session, so that a start does not read their logs."""
    with sqlite3.connect(f"file:{folders.index}?mode=ro", uri=True) as db:
        return bool(db.execute("select count(*) from sessions").fetchone()[0] == SESSIONS)


@bench("supervisor_start")
def supervisor_start() -> list[Figure]:
    with stocked(SESSIONS) as (folders, env):
        unknown = served(folders, env)
        wait_until("all are in the index", lambda: indexed(folders), 120)
        took = []
        yard = []
        for _ in range(STARTS):
            stop(folders)
            took.append(served(folders, env))
            begun = time.perf_counter()
            subprocess.run([sys.executable, "-c", "import harness.supervisor.main"], env=env, check=True)
            yard.append(time.perf_counter() - begun)
    return [
        Figure(
            "supervisor start with 1,000 ended sessions, to the answer that lists them",
            "s",
            took,
            "≤ 1 s",
            max(took) <= 1,
            yard,
            "a Python that loads the supervisor's modules",
            note=f"without an index, every log read: {unknown:.2f} s",
        )
    ]
