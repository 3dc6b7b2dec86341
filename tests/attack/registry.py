"""All families of attacks, in the order in which they are tried.

A new one is a file in `families` and an entry here.
"""

from __future__ import annotations

from tests.attack.families import (
    approvals,
    daemons,
    deletions,
    devices,
    habits,
    hidden,
    kernel,
    namespaces,
    network,
    paths,
    processes,
    races,
    repository,
    sockets,
    terminal,
    undo,
)
from tests.attack.model import Family

FAMILIES = (
    Family("paths", paths.attempts),
    Family("races", races.attempts),
    Family("sockets", sockets.attempts),
    Family("network", network.attempts),
    Family("processes", processes.attempts),
    Family("kernel", kernel.attempts),
    Family("namespaces", namespaces.attempts),
    Family("devices", devices.attempts),
    Family("habits", habits.attempts),
    Family("hidden", hidden.attempts),
    Family("daemons", daemons.attempts),
    Family("repository", repository.attempts),
    Family("approvals", approvals.attempts),
    Family("deletions", deletions.attempts),
    Family("undo", undo.attempts),
    Family("terminal", terminal.attempts),
)
