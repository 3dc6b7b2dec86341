"""Verifying the part of a log that a keeper did not read at its start, in a child that takes only time that nobody else
wants. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

from harness.eventlog.framing import LogError
from harness.eventlog.reader import DamagedLog, Place, verify_before
from harness.keeper.loop import child
from harness.keeper.loop.event_loop import Loop

_SAID = 4096
_GOOD = b"good"


def begin(loop: Loop, log: Path, until: Place, damaged: Callable[[str], None], over: Callable[[int], object]) -> int:
    """Verify everything up to the record at ``until``; the pid of the child that does. ``damaged`` hears what is wrong,
    if anything is, after ``over`` heard that the child is gone. A child that ends without a word proves nothing: the
    next keeper begins anew. Raises OSError.
    """
    pid, line = child.begin("keeper: verifying the log ended", lambda out: _verify(log, until, out))

    def said() -> None:
        with line:
            text = line.recv(_SAID)
            loop.unwatch(line.fileno())
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)
        over(pid)
        if text and text != _GOOD:
            damaged(text.decode("utf-8", "replace"))

    loop.watch(line.fileno(), said)
    return pid


def _verify(log: Path, until: Place, out: socket.socket) -> None:
    with contextlib.suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    out.send(_verdict(log, until)[:_SAID])


def _verdict(log: Path, until: Place) -> bytes:
    try:
        found = verify_before(log, until)
    except LogError as exc:
        return str(exc).encode()
    if found is None:
        return _GOOD
    return str(DamagedLog(Path(found.file), found.offset, found.seq, found.why)).encode()
