"""Named points where a fault can be asked for, so that a crash at each stage of a call can be reproduced.

Standard library only.
"""

from __future__ import annotations

import os
import signal
import sys

CALL_POINTS = (
    "keeper.before_started",
    "keeper.after_started",
    "keeper.tool_running",
    "keeper.after_spool",
    "keeper.after_ended",
)
"""Arrows of one call."""
POINTS = (*CALL_POINTS, "keeper.undo_started")
ACTIONS = ("kill", "block")


class FaultError(Exception):
    """The request names no point or action that exists."""


class Faults:
    """At most one fault, ``point:action``; an empty text asks for none. Raises FaultError on anything else."""

    __slots__ = ("_action", "_point")

    def __init__(self, spec: str) -> None:
        self._point, _, self._action = spec.partition(":")
        if spec and (self._point not in POINTS or self._action not in ACTIONS):
            raise FaultError(f"fault {spec[:80]!r} is not one of {', '.join(POINTS)} followed by :kill or :block")

    def hit(self, point: str) -> None:
        """Die or stop here when this point was asked for."""
        if self._point != point:
            return
        print(f"fault: {self._action} at {point}", file=sys.stderr, flush=True)
        if self._action == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        while True:
            signal.pause()
