"""How soon a thread that was asleep gets a processor. Standard library only.

``reference: sched(7), sched_setattr(2)``; a scheduler that takes wishes for the length of a turn (EEVDF) came with
Linux 6.12. An older one takes the wish and does nothing with it.
"""

from __future__ import annotations

import ctypes
import errno
import os

from harness.linux import kernel

_CALLS = {"x86_64": (314, 315), "aarch64": (274, 275), "riscv64": (274, 275)}
"""Numbers of sched_setattr and sched_getattr, by machine."""
_NORMAL = 0
_RESET_ON_FORK = 1


class _Attributes(ctypes.Structure):
    _fields_ = (
        ("size", ctypes.c_uint32),
        ("policy", ctypes.c_uint32),
        ("flags", ctypes.c_uint64),
        ("nice", ctypes.c_int32),
        ("priority", ctypes.c_uint32),
        ("runtime", ctypes.c_uint64),
        ("deadline", ctypes.c_uint64),
        ("period", ctypes.c_uint64),
    )


def shorten(thread: int, nanoseconds: int) -> None:
    """Give a thread of ours (by its native id) turns of this length: it waits less until it runs, and runs as much in
    all as before. What it starts has usual turns again; one whose scheduling somebody chose is left alone.

    Raises OSError, also where the call is not known.
    """
    if os.uname().machine not in _CALLS:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    set_number, get_number = _CALLS[os.uname().machine]
    now = _Attributes()
    kernel.syscall(get_number, thread, ctypes.byref(now), ctypes.sizeof(now), 0)
    if now.policy != _NORMAL:
        return
    now.size = ctypes.sizeof(now)
    now.flags = _RESET_ON_FORK
    now.runtime = nanoseconds
    kernel.syscall(set_number, thread, ctypes.byref(now), 0)


def length(thread: int) -> int:
    """Nanoseconds of a thread's turn; 0 where the scheduler does not say. Raises OSError as `shorten` does."""
    if os.uname().machine not in _CALLS:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))
    now = _Attributes()
    kernel.syscall(_CALLS[os.uname().machine][1], thread, ctypes.byref(now), ctypes.sizeof(now), 0)
    return int(now.runtime)
