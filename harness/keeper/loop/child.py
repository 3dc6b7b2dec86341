"""A child of the keeper that works beside it; it dies with the keeper and holds none of its descriptors. Standard
library only.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable
from typing import NoReturn

from harness.linux import forked, kernel


def begin(name: str, work: Callable[[socket.socket], None]) -> tuple[int, socket.socket]:
    """Have a child do ``work``, which is given its end of a line to us that keeps messages apart; (its pid, our end).
    What ``work`` raises is printed under ``name``. Raises OSError.
    """
    return forked.begin(lambda line, keeper: _child(name, work, line, keeper))


def _child(name: str, work: Callable[[socket.socket], None], line: socket.socket, keeper: int) -> NoReturn:
    try:
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGUSR1):
            signal.signal(number, signal.SIG_DFL)
        if os.getppid() == keeper:
            os.closerange(3, line.fileno())
            os.closerange(line.fileno() + 1, os.sysconf("SC_OPEN_MAX"))
            work(line)
    except BaseException as exc:  # whatever it is: this process must never go on as a second keeper
        with contextlib.suppress(Exception):
            print(f"{name}: {type(exc).__name__}: {exc}", file=sys.stderr, flush=True)
    finally:
        os._exit(0)
