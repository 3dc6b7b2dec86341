"""A child of this process with a line to it. Standard library only."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import NoReturn


def begin(child: Callable[[socket.socket, int], NoReturn]) -> tuple[int, socket.socket]:
    """Fork ``child``, which is given its end of a line that keeps messages apart, and our pid; (its pid, our end).

    Raises OSError when there can be no process; then nothing is left.
    """
    us = os.getpid()
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        try:
            pid = os.fork()
        except OSError:
            ours.close()
            raise
        if pid == 0:
            child(theirs, us)
    return pid, ours
