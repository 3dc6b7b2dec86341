"""How much of a busy processor all processes of one session (setsid(2)) get beside those of other sessions. Standard
library only.

``reference: sched(7), "The autogroup feature"``: where the kernel groups by session, the nice value of a process counts
only among the processes of its own, and the group has one of its own in ``/proc/PID/autogroup``.
"""

from __future__ import annotations

import contextlib
import os
import time

OURS = 3
"""Of the supervisor, its keepers and brains: behind the screen that shows them, before the agents' calls."""
_PAUSE = 0.1
"""Seconds in which the kernel lets one process of the whole machine without privileges set a group's nice value."""


def lower(nice: int, process: str = "/proc/self", proc: int | None = None) -> bool:
    """Put the group of a process, given by its folder (under the open ``proc``), behind others; whether there is
    nothing more to try: it has the value, or the kernel does not group, or the process is gone or nobody's to change.
    False: others set theirs just now.

    A process that has hidden its memory may not, and one that leads a new session has a new group.
    """
    try:
        fd = os.open(f"{process}/autogroup", os.O_WRONLY | os.O_CLOEXEC, dir_fd=proc)
    except OSError:
        return True
    try:
        os.write(fd, b"%d" % nice)
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        os.close(fd)
    return True


def lower_ours(nice: int = OURS, tries: int = 5) -> None:
    """Put the group of the session that we lead behind others, and wait a little where others set theirs just now; what
    cannot be lowered runs as it would have.
    """
    if os.getsid(0) != os.getpid():  # else it would be a shell's, with all that runs in it
        return
    for _ in range(tries):
        if lower(nice):
            return
        time.sleep(_PAUSE)


def value(shown: bytes) -> int | None:
    """The nice value in what ``/proc/PID/autogroup`` shows; None where it shows nothing, as for a process whose session
    began before the kernel grouped.
    """
    number = shown.rpartition(b"nice")[2]
    return int(number) if number else None


def nice() -> int | None:
    """The nice value of this process's group; None where it is in none."""
    with contextlib.suppress(OSError), open("/proc/self/autogroup", "rb") as file:
        return value(file.read())
    return None
