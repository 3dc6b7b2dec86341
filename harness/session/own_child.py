"""A child of the keeper that works beside it and only speaks; it dies with the keeper and holds none of its
descriptors. Standard library only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from typing import NoReturn

from harness.linux import kernel


def begin(name: str, work: Callable[[int], None], flags: int = 0) -> tuple[int, int]:
    """Have a child do ``work``, which is given the descriptor to speak to; (its pid, the descriptor to read from).
    ``flags`` are those of the pipe; what ``work`` raises is printed under ``name``. Raises OSError.
    """
    read_end, write_end = os.pipe2(os.O_CLOEXEC | flags)
    keeper = os.getpid()
    try:
        pid = os.fork()
    except OSError:
        os.close(read_end)
        os.close(write_end)
        raise
    if pid == 0:
        _child(name, work, write_end, keeper)
    os.close(write_end)
    return pid, read_end


def _child(name: str, work: Callable[[int], None], out: int, keeper: int) -> NoReturn:
    try:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, signal.SIG_DFL)
        if os.getppid() == keeper:
            os.closerange(3, out)
            os.closerange(out + 1, os.sysconf("SC_OPEN_MAX"))
            work(out)
    except BaseException as exc:  # whatever it is: this process must never go on as a second keeper
        with contextlib.suppress(Exception):
            print(f"{name}: {type(exc).__name__}: {exc}", file=sys.stderr, flush=True)
    finally:
        os._exit(0)
