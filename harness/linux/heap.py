"""How the C library keeps a process's memory. Standard library only; does nothing where there is no glibc.

The numbers are glibc's (``malloc.h``).
"""

from __future__ import annotations

import ctypes

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_LARGE = 128 * 1024


def give_back() -> None:
    """Large blocks go back to the system when they are freed, and so does a free end of the heap: a request is a
    little larger each turn, and the heap would grow by every one of them. Left alone, glibc takes blocks as large as
    the largest that was freed from the heap, and keeps twice as much free at its end. `Spares` says what a keeper
    takes without both.
    """
    _set({_M_MMAP_THRESHOLD: _LARGE, _M_TRIM_THRESHOLD: _LARGE})


def _set(options: dict[int, int]) -> None:
    libc = ctypes.CDLL(None)
    if hasattr(libc, "mallopt"):
        for option, value in options.items():
            libc.mallopt(option, value)
