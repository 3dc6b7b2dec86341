"""The screen does not wait long for a processor, nor its threads for the interpreter: between a key and its paint three
threads take turns, beside agents that keep every core busy.
"""

from __future__ import annotations

import contextlib
import sys
import threading

from harness.linux import time_slices

TURN_NS = 300_000
"""Of the processor; a fifth or less of what is usual."""
_INTERPRETER_S = 0.001


def take() -> None:
    """For every thread there is now; programs that are started from here have usual turns."""
    sys.setswitchinterval(_INTERPRETER_S)
    for thread in threading.enumerate():
        if thread.native_id is not None:
            with contextlib.suppress(OSError):  # an old kernel, a walled-in process: the screen is slower then
                time_slices.shorten(thread.native_id, TURN_NS)
