"""How a whole tree of processes is ended. Standard library only."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Collection

from harness.linux.proc import Identity, boot_id, children, descendants, identify, stat


def reap(spare: Collection[int] = ()) -> tuple[bool, int]:
    """Collect the dead among our children: (none but ``spare`` are left and so, for a subreaper, no other descendant;
    bytes the largest held).

    The largest includes those that the dead had themselves waited for.
    """
    largest = 0
    for pid in children(os.getpid()):
        if pid not in spare:
            with contextlib.suppress(ChildProcessError):
                _, _, used = os.wait4(pid, os.WNOHANG)
                largest = max(largest, used.ru_maxrss << 10)
    return all(pid in spare for pid in children(os.getpid())), largest


def kill_below_us(spare: Collection[int] = ()) -> None:
    """Send SIGKILL to every descendant that exists now but ``spare`` and those below them; callers repeat until `reap`
    says that none is left.

    Each child is looked at by itself, so that what is born below a spared one meanwhile is never taken for another's.
    """
    for child in children(os.getpid()):
        if child in spare:
            continue
        for pid in (*descendants(child), child):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def kill_session(leader: Identity, timeout_s: float) -> bool:
    """Kill what a dead keeper's call left: everything below ``leader`` and in its session; True when nothing is left
    within ``timeout_s``.

    The leader goes last, since only through it, a subreaper outside the sandbox, daemons are found that left its
    session. Members of the session that are older than the leader belong to somebody who had the number before and are
    left alone.
    """
    if leader.boot != boot_id():
        return True
    deadline = time.monotonic() + timeout_s
    while True:
        now = identify(leader.pid)
        if now is not None and now.start != leader.start:
            return True
        members = set(_members(leader))
        left = members | set(descendants(leader.pid) if now is not None else ())
        if not left:
            return True
        if time.monotonic() > deadline:
            return False
        rest = left - {leader.pid}
        # what is born faster than it is killed must not keep its leader alive
        late = time.monotonic() > deadline - timeout_s / 2
        for pid in rest if rest and not late else left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        time.sleep(0.01)


def _members(leader: Identity) -> list[int]:
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := stat(int(name))) is not None:
            ours = int(fields[3]) == leader.pid and int(fields[19]) >= leader.start
            if ours and fields[0] not in "ZX":
                found.append(int(name))
    return found
